// The iterator of a generator function that is an operator: each item it makes is one call of the body.
#include <Python.h>

#include "crossing.h"
#include "recording/function_sample.h"
#include "recording/heap_type.h"

namespace headrace::python {
namespace {

struct OperatorIterator {
  Owned iterator;
  Owned op;
  std::shared_ptr<profile::OperatorHandle> handle;
  iternextfunc next_item;  ///< of the iterator's class

  static constexpr const char* kName = "headrace._core.OperatorIterator";
  static constexpr auto kReferences = std::array{&OperatorIterator::iterator, &OperatorIterator::op};
  static constexpr auto kWrapped = &OperatorIterator::iterator;
  /// send, throw, close, gi_frame ... are the generator's.
  static constexpr auto kOwnAttributes = std::to_array<std::string_view>({"__class__", "__wrapped__"});

  static PyObject* make(PyTypeObject* type, PyObject* args, PyObject*);
  PyObject* next();
};

PyObject* OperatorIterator::next() {
  if (!handle->begin()) return next_item(iterator.get());
  PyObject* item = sampled(handle, [&] { return next_item(iterator.get()); });
  if (item != nullptr) {
    handle->end(false);
  } else if (next_failed(item)) {
    handle->end(true);
  } else {
    handle->abandon();  // the end of the generator is no item
  }
  return item;
}

PyObject* OperatorIterator::make(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* iterable = nullptr;
  PyObject* op = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &iterable, &op)) return nullptr;
  auto handle = operator_handle_of(op);
  if (handle == nullptr) return nullptr;
  Owned iterator(calling_python([&] { return PyObject_GetIter(iterable); }));
  if (!iterator) return nullptr;
  const iternextfunc next_item = Py_TYPE(iterator.get())->tp_iternext;
  return HeapType<OperatorIterator>::create(type, std::move(iterator), Owned::ref(op), std::move(handle),
                                            next_item);
}

}  // namespace

bool add_operator_iterator(PyObject* module) { return HeapType<OperatorIterator>::add(module); }

}  // namespace headrace::python
