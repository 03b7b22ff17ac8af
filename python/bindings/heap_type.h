// What every hand-written heap type of this module shares: the garbage collector's hooks and the end of life.
//
//     struct Thing {
//       PyObject_HEAD
//       PyObject* callable;
//       PyObject* weakrefs;
//       State state;                                   // C++ members; default-constructed by make()
//       static constexpr auto kReferences = std::array{&Thing::callable};
//     };
//     PyType_Slot slots[] = {HEAP_TYPE_SLOTS(Thing), ...};
#pragma once

#include <Python.h>

#include <array>
#include <memory>
#include <new>

namespace headrace::python {

template <class T>
struct HeapType {
  static T* cast(PyObject* object) { return reinterpret_cast<T*>(object); }

  /// A new object of `type` with its C++ members made; null with an exception set.
  static T* make(PyTypeObject* type) {
    T* self = cast(type->tp_alloc(type, 0));
    if (self != nullptr) new (&self->state) decltype(self->state)();
    return self;
  }
  static PyObject* object(T* self) { return reinterpret_cast<PyObject*>(self); }

  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    for (const auto reference : T::kReferences) Py_VISIT(cast(self)->*reference);
    return 0;
  }
  static int clear(PyObject* self) {
    for (const auto reference : T::kReferences) Py_CLEAR(cast(self)->*reference);
    return 0;
  }
  static void dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (cast(self)->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
    clear(self);
    std::destroy_at(&cast(self)->state);
    type->tp_free(self);
    Py_DECREF(type);
  }
};

/// A function in a slot table.
template <class Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

#define HEAP_TYPE_SLOTS(T)                                                               \
  {Py_tp_traverse, ::headrace::python::slot(::headrace::python::HeapType<T>::traverse)}, \
      {Py_tp_clear, ::headrace::python::slot(::headrace::python::HeapType<T>::clear)}, { \
    Py_tp_dealloc, ::headrace::python::slot(::headrace::python::HeapType<T>::dealloc)    \
  }

}  // namespace headrace::python
