// A callable that is timed as an operator: no Python frame, 40 ns over the bare call.
#include <Python.h>
#include <structmember.h>

#include <cstring>
#include <new>

#include "crossing.h"
#include "function_sample.h"

namespace headrace::python {
namespace {

using Handle = std::shared_ptr<profile::OperatorHandle>;

struct TimedCallable {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* callable;
  PyObject* op;  ///< the Operator object, for pickling and for people
  PyObject* weakrefs;
  bool stands_in;  ///< in the place of the user's own object: it says that it is of that class
  Handle handle;
};

TimedCallable* cast(PyObject* object) { return reinterpret_cast<TimedCallable*>(object); }

PyObject* timed_vectorcall(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  TimedCallable* timed = cast(self);
  profile::OperatorHandle& handle = *timed->handle;
  if (!handle.begin()) return PyObject_Vectorcall(timed->callable, args, nargsf, kwnames);
  PyObject* result = nullptr;
  {
    const SampledCall sampled(timed->handle);
    result = PyObject_Vectorcall(timed->callable, args, nargsf, kwnames);
  }
  handle.end(result == nullptr);
  return result;
}

PyObject* timed_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"callable", "operator", "stands_in", nullptr};
  PyObject* callable = nullptr;
  PyObject* op = nullptr;
  int stands_in = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|p", const_cast<char**>(names), &callable, &op,
                                   &stands_in))
    return nullptr;
  if (!PyCallable_Check(callable)) {
    PyErr_Format(PyExc_TypeError, "an operator needs something callable, not %.200s",
                 Py_TYPE(callable)->tp_name);
    return nullptr;
  }
  Handle handle = operator_handle_of(op);
  if (handle == nullptr) return nullptr;
  auto* self = cast(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->vectorcall = timed_vectorcall;
  self->callable = Py_NewRef(callable);
  self->op = Py_NewRef(op);
  self->stands_in = stands_in != 0;
  new (&self->handle) Handle(std::move(handle));
  return reinterpret_cast<PyObject*>(self);
}

int timed_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->callable);
  Py_VISIT(cast(self)->op);
  return 0;
}

int timed_clear(PyObject* self) {
  Py_CLEAR(cast(self)->callable);
  Py_CLEAR(cast(self)->op);
  return 0;
}

void timed_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (cast(self)->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  timed_clear(self);
  cast(self)->handle.~Handle();
  type->tp_free(self);
  Py_DECREF(type);
}

/// The body's own attributes show through, __name__ and __doc__ too; only what pickling and unwrapping need
/// is ours.
bool is_own(const char* name) {
  for (const char* own : {"__wrapped__", "__reduce__", "__reduce_ex__", "__class__", "__call__", "__get__",
                          "headrace_operator"}) {
    if (std::strcmp(name, own) == 0) return true;
  }
  return false;
}

PyObject* timed_getattro(PyObject* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return nullptr;
  const bool says_class = cast(self)->stands_in && std::strcmp(text, "__class__") == 0;
  if (is_own(text) && !says_class) return PyObject_GenericGetAttr(self, name);
  return PyObject_GetAttr(cast(self)->callable, name);
}

int timed_setattro(PyObject* self, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(cast(self)->callable, name, value);
}

/// Functions become methods; builtins, classes, partials and methods that are bound already stay what they
/// are.
int becomes_method(PyObject* callable, PyObject* object, PyObject* type);

PyObject* timed_descr_get(PyObject* self, PyObject* object, PyObject* type) {
  if (object == nullptr || object == Py_None) return Py_NewRef(self);
  const int bound = becomes_method(cast(self)->callable, object, type);
  if (bound < 0) return nullptr;
  return bound != 0 ? PyMethod_New(self, object) : Py_NewRef(self);
}

int becomes_method(PyObject* callable, PyObject* object, PyObject* type) {
  const descrgetfunc get = Py_TYPE(callable)->tp_descr_get;
  if (get == timed_descr_get) return becomes_method(cast(callable)->callable, object, type);
  if (get == nullptr || PyMethod_Check(callable)) return 0;
  if (PyFunction_Check(callable)) return 1;
  // functools.partial has a descriptor slot since Python 3.13, and still hands out itself.
  const Owned got(get(callable, object, type));
  return !got ? -1 : got.get() != callable ? 1 : 0;
}

PyObject* timed_repr(PyObject* self) {
  return PyUnicode_FromFormat("<headrace operator '%s': %R>", cast(self)->handle->name().c_str(),
                              cast(self)->callable);
}

PyObject* timed_reduce(PyObject* self, PyObject*) {
  const Owned module(PyImport_ImportModule("headrace.record.operator"));
  if (!module) return nullptr;
  if (cast(self)->stands_in) {
    const Owned itself(PyObject_GetAttrString(module.get(), "itself"));
    return itself ? Py_BuildValue("O(O)", itself.get(), cast(self)->callable) : nullptr;
  }
  return PyObject_CallMethod(module.get(), "reduce_callable", "OOO", self, cast(self)->callable,
                             cast(self)->op);
}

PyMethodDef timed_methods[] = {
    {"__reduce__", timed_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef timed_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(TimedCallable, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TimedCallable, weakrefs), READONLY, nullptr},
    {"__wrapped__", T_OBJECT_EX, offsetof(TimedCallable, callable), READONLY, nullptr},
    {"headrace_operator", T_OBJECT_EX, offsetof(TimedCallable, op), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot timed_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(timed_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(timed_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(timed_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(timed_clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_getattro, reinterpret_cast<void*>(timed_getattro)},
    {Py_tp_setattro, reinterpret_cast<void*>(timed_setattro)},
    {Py_tp_descr_get, reinterpret_cast<void*>(timed_descr_get)},
    {Py_tp_repr, reinterpret_cast<void*>(timed_repr)},
    {Py_tp_methods, timed_methods},
    {Py_tp_members, timed_members},
    {0, nullptr},
};

PyType_Spec timed_spec = {
    "headrace._core.TimedCallable",
    sizeof(TimedCallable),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    timed_slots,
};

}  // namespace

bool add_timed_callable(PyObject* module) { return add_type(module, timed_spec, "TimedCallable"); }

}  // namespace headrace::python
