// The iterator of a generator function that is an operator: each item it makes is one call of the body.
#include <Python.h>
#include <structmember.h>

#include <new>

#include "crossing.h"
#include "function_sample.h"

namespace headrace::python {
namespace {

using Handle = std::shared_ptr<profile::OperatorHandle>;

struct OperatorIterator {
  PyObject_HEAD PyObject* iterator;
  PyObject* op;
  PyObject* weakrefs;
  iternextfunc next;
  Handle handle;
};

OperatorIterator* cast(PyObject* object) { return reinterpret_cast<OperatorIterator*>(object); }

PyObject* operator_next(PyObject* self) {
  OperatorIterator* timed = cast(self);
  if (!timed->handle->begin()) return timed->next(timed->iterator);
  PyObject* item = nullptr;
  {
    const SampledCall sampled(timed->handle);
    item = timed->next(timed->iterator);
  }
  if (item != nullptr) {
    timed->handle->end(false);
    return item;
  }
  // The end of the generator is no item; an exception is one that failed.
  if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_StopIteration) == 0) {
    timed->handle->end(true);
  } else {
    timed->handle->abandon();
  }
  return nullptr;
}

PyObject* operator_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* iterable = nullptr;
  PyObject* op = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &iterable, &op)) return nullptr;
  Handle handle = operator_handle_of(op);
  if (handle == nullptr) return nullptr;
  Owned iterator(PyObject_GetIter(iterable));
  if (!iterator) return nullptr;
  auto* self = cast(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  new (&self->handle) Handle(std::move(handle));
  self->op = Py_NewRef(op);
  self->iterator = iterator.release();
  self->next = Py_TYPE(self->iterator)->tp_iternext;
  return reinterpret_cast<PyObject*>(self);
}

int operator_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->iterator);
  Py_VISIT(cast(self)->op);
  return 0;
}

int operator_clear(PyObject* self) {
  Py_CLEAR(cast(self)->iterator);
  Py_CLEAR(cast(self)->op);
  return 0;
}

void operator_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (cast(self)->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  operator_clear(self);
  cast(self)->handle.~Handle();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* operator_iter(PyObject* self) { return Py_NewRef(self); }

/// send, throw, close, gi_frame ...: the generator's own.
PyObject* operator_getattro(PyObject* self, PyObject* name) {
  if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0 ||
      PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) {
    return PyObject_GenericGetAttr(self, name);
  }
  return PyObject_GetAttr(cast(self)->iterator, name);
}

PyMemberDef operator_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(OperatorIterator, weakrefs), READONLY, nullptr},
    {"__wrapped__", T_OBJECT_EX, offsetof(OperatorIterator, iterator), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot operator_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(operator_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(operator_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(operator_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(operator_clear)},
    {Py_tp_iter, reinterpret_cast<void*>(operator_iter)},
    {Py_tp_iternext, reinterpret_cast<void*>(operator_next)},
    {Py_tp_getattro, reinterpret_cast<void*>(operator_getattro)},
    {Py_tp_members, operator_members},
    {0, nullptr},
};

PyType_Spec operator_spec = {
    "headrace._core.OperatorIterator",       sizeof(OperatorIterator), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, operator_slots,
};

}  // namespace

bool add_operator_iterator(PyObject* module) { return add_type(module, operator_spec, "OperatorIterator"); }

}  // namespace headrace::python
