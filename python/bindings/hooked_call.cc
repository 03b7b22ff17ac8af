// A callable around which something else runs, without a Python frame of its own: the tracebacks of what it
// calls are those of the bare call.
#include <Python.h>
#include <structmember.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "crossing.h"
#include "heap_type.h"

namespace headrace::python {
namespace {

/// In the place of the user's own function: it says that it is of that class, and is pickled by its name.
struct Place {
  bool is_the_originals = false;
};

struct HookedCall {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* original;  ///< None: there is nothing to call, the result is None
  PyObject* before;  ///< before(*args) -> None, or a tuple in place of the arguments where none has a keyword
  PyObject* after;   ///< after(result, *args as the caller gave them) -> None or what takes its place
  PyObject* failed;  ///< failed(*args) when the original raised
  PyObject* weakrefs;
  Place state;
  static constexpr auto kReferences =
      std::array{&HookedCall::original, &HookedCall::before, &HookedCall::after, &HookedCall::failed};
};

using Type = HeapType<HookedCall>;

/// A hook's own failure is never the caller's: it is printed nowhere and changes nothing. What is no failure of
/// the hook stays set: an interrupt, or the exit that a signal's handler asks for.
Owned call_hook(PyObject* hook, PyObject* first, PyObject* const* args, Py_ssize_t count) {
  std::array<PyObject*, 8> few;  // most calls, without an allocation
  std::vector<PyObject*> many;
  const auto room = static_cast<std::size_t>(count) + 2;
  if (room > few.size()) many.resize(room);
  PyObject** const all =
      (room > few.size() ? many.data() : few.data()) + 1;  // in front: a bound method's self
  PyObject** end = all;
  if (first != nullptr) *end++ = first;
  end = std::copy(args, args + count, end);
  const auto given = static_cast<std::size_t>(end - all);
  Owned result(calling_python(
      [&] { return PyObject_Vectorcall(hook, all, given | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr); }));
  if (!result && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
  return result;
}

PyObject* call_original(PyObject* original, PyObject* const* args, std::size_t nargsf, PyObject* kwnames,
                        PyObject* changed) {
  if (original == Py_None) return Py_NewRef(Py_None);
  return calling_python([&] {
    if (changed == nullptr) return PyObject_Vectorcall(original, args, nargsf, kwnames);
    return PyObject_Vectorcall(original, &PyTuple_GET_ITEM(changed, 0),
                               static_cast<std::size_t>(PyTuple_GET_SIZE(changed)), nullptr);
  });
}

PyObject* hooked_vectorcall(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  HookedCall* hooked = Type::cast(self);
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  Owned changed;
  if (hooked->before != Py_None) {
    changed = call_hook(hooked->before, nullptr, args, count);
    if (PyErr_Occurred() != nullptr) return nullptr;
    const bool replaces = changed && PyTuple_Check(changed.get()) && kwnames == nullptr;
    if (!replaces) changed = Owned();
  }
  Owned result(call_original(hooked->original, args, nargsf, kwnames, changed.get()));
  if (!result) {
    if (hooked->failed != Py_None) {
      PyObject* type = nullptr;
      PyObject* value = nullptr;
      PyObject* trace = nullptr;
      PyErr_Fetch(&type, &value, &trace);
      call_hook(hooked->failed, nullptr, args, count);
      if (PyErr_Occurred() == nullptr) {
        PyErr_Restore(type, value, trace);
      } else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
      }
    }
    return nullptr;
  }
  if (hooked->after == Py_None) return result.release();
  Owned replaced = call_hook(hooked->after, result.get(), args, count);
  if (PyErr_Occurred() != nullptr) return nullptr;
  return replaced && replaced.get() != Py_None ? replaced.release() : result.release();
}

PyObject* hooked_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"original", "before", "after", "failed", "stands_in", nullptr};
  PyObject* original = nullptr;
  PyObject* before = Py_None;
  PyObject* after = Py_None;
  PyObject* failed = Py_None;
  int stands_in = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOp", const_cast<char**>(names), &original, &before,
                                   &after, &failed, &stands_in)) {
    return nullptr;
  }
  HookedCall* self = Type::make(type);
  if (self == nullptr) return nullptr;
  self->vectorcall = hooked_vectorcall;
  self->original = Py_NewRef(original);
  self->before = Py_NewRef(before);
  self->after = Py_NewRef(after);
  self->failed = Py_NewRef(failed);
  self->state.is_the_originals = stands_in != 0;
  return Type::object(self);
}

/// Called on an instance it is a method, as the function that it stands for.
PyObject* hooked_descr_get(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

PyObject* hooked_getattro(PyObject* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return nullptr;
  const bool says_class = Type::cast(self)->state.is_the_originals && std::strcmp(text, "__class__") == 0;
  for (const char* own : {"__class__", "__wrapped__", "__reduce__", "__reduce_ex__", "__get__", "__call__"}) {
    if (std::strcmp(text, own) == 0 && !says_class) return PyObject_GenericGetAttr(self, name);
  }
  return PyObject_GetAttr(Type::cast(self)->original, name);
}

int hooked_setattro(PyObject* self, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(Type::cast(self)->original, name, value);
}

/// In a message it is what it stands for.
PyObject* hooked_repr(PyObject* self) { return PyObject_Repr(Type::cast(self)->original); }

PyObject* hooked_reduce(PyObject* self, PyObject*) {
  HookedCall* hooked = Type::cast(self);
  if (hooked->state.is_the_originals) return PyObject_GetAttrString(hooked->original, "__qualname__");
  return Py_BuildValue("O(OOOO)", Py_TYPE(self), hooked->original, hooked->before, hooked->after,
                       hooked->failed);
}

PyMethodDef hooked_methods[] = {
    {"__reduce__", hooked_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef hooked_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(HookedCall, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(HookedCall, weakrefs), READONLY, nullptr},
    {"__wrapped__", T_OBJECT_EX, offsetof(HookedCall, original), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot hooked_slots[] = {
    HEAP_TYPE_SLOTS(HookedCall),
    {Py_tp_new, slot(hooked_new)},
    {Py_tp_repr, slot(hooked_repr)},
    {Py_tp_call, slot(PyVectorcall_Call)},
    {Py_tp_descr_get, slot(hooked_descr_get)},
    {Py_tp_getattro, slot(hooked_getattro)},
    {Py_tp_setattro, slot(hooked_setattro)},
    {Py_tp_methods, hooked_methods},
    {Py_tp_members, hooked_members},
    {0, nullptr},
};

PyType_Spec hooked_spec = {
    "headrace._core.HookedCall",
    sizeof(HookedCall),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    hooked_slots,
};

}  // namespace

bool add_hooked_call(PyObject* module) { return add_type(module, hooked_spec, "HookedCall"); }

}  // namespace headrace::python
