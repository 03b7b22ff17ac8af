// Calls of operators, timed: a callable, the items of a generator, the reads of a dataset.
#include <Python.h>

#include "crossing.h"
#include "recording/function_sample.h"
#include "recording/heap_type.h"

namespace headrace::python {
namespace {

// --- a callable ---

/// A callable that is timed as an operator: no Python frame, 40 ns over the bare call.
struct TimedCallable {
  Owned callable;
  Owned op;  ///< the Operator object, for pickling and for people
  std::shared_ptr<profile::OperatorHandle> handle;
  bool stands_in = false;

  static constexpr const char* kName = "headrace._core.TimedCallable";
  static constexpr auto kReferences = std::array{&TimedCallable::callable, &TimedCallable::op};
  static constexpr auto kWrapped = &TimedCallable::callable;
  static constexpr auto kOperator = &TimedCallable::op;
  /// The body's own attributes show through, __name__ and __doc__ too; only what pickling and unwrapping need
  /// is ours.
  static constexpr auto kOwnAttributes =
      std::to_array<std::string_view>({"__wrapped__", "__reduce__", "__reduce_ex__", "__class__", "__call__",
                                       "__get__", "headrace_operator"});
  static constexpr bool kForwardsWrites = true;

  static PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs);
  PyObject* call(const Arguments& arguments);
  PyObject* bind(PyObject* object, PyObject* owner);
  PyObject* repr();
  PyObject* reduce();
};

using CallableType = HeapType<TimedCallable>;

PyObject* TimedCallable::call(const Arguments& arguments) {
  profile::OperatorHandle& its = *handle;
  if (!its.begin()) return arguments.pass_to(callable.get());
  PyObject* result = sampled(handle, [&] { return arguments.pass_to(callable.get()); });
  its.end(result == nullptr);
  return result;
}

PyObject* TimedCallable::make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* callable = nullptr;
  PyObject* op = nullptr;
  int stands_in = 0;
  if (!parse(args, kwargs, "OO|p", {"callable", "operator", "stands_in", nullptr}, &callable, &op,
             &stands_in))
    return nullptr;
  if (!PyCallable_Check(callable)) {
    PyErr_Format(PyExc_TypeError, "an operator needs something callable, not %.200s",
                 Py_TYPE(callable)->tp_name);
    return nullptr;
  }
  auto handle = operator_handle_of(op);
  if (handle == nullptr) return nullptr;
  return CallableType::create(type, Owned::ref(callable), Owned::ref(op), std::move(handle), stands_in != 0);
}

/// Functions become methods; builtins, classes, partials and methods that are bound already stay what they
/// are. Below 0 with an exception set.
int becomes_method(PyObject* callable, PyObject* object, PyObject* owner) {
  if (Py_TYPE(callable) == CallableType::type)
    return becomes_method(CallableType::contents(callable).callable.get(), object, owner);
  const descrgetfunc get = Py_TYPE(callable)->tp_descr_get;
  if (get == nullptr || PyMethod_Check(callable)) return 0;
  if (PyFunction_Check(callable)) return 1;
  // functools.partial has a descriptor slot since Python 3.13, and still hands out itself.
  const Owned got(get(callable, object, owner));
  return !got ? -1 : got.get() != callable ? 1 : 0;
}

PyObject* TimedCallable::bind(PyObject* object, PyObject* owner) {
  PyObject* self = CallableType::object(*this);
  const int bound = becomes_method(callable.get(), object, owner);
  if (bound < 0) return nullptr;
  return bound != 0 ? PyMethod_New(self, object) : Py_NewRef(self);
}

PyObject* TimedCallable::repr() {
  return PyUnicode_FromFormat("<headrace operator '%s': %R>", handle->name().c_str(), callable.get());
}

PyObject* TimedCallable::reduce() {
  if (stands_in) return reduced_to(callable.get());
  const Owned reduce = imported("headrace.record.operator", "reduce_callable");
  return reduce ? PyObject_CallFunctionObjArgs(reduce.get(), CallableType::object(*this), callable.get(),
                                               op.get(), nullptr)
                : nullptr;
}

// --- the items of a generator ---

/// The iterator of a generator function that is an operator: each item it makes is one call of the body.
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

using IteratorType = HeapType<OperatorIterator>;

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
  return IteratorType::create(type, std::move(iterator), Owned::ref(op), std::move(handle), next_item);
}

// --- the reads of a dataset ---

/// Stand-in for the user's dataset while a loader's fetcher fetches: each read is one call of the
/// operator, and the index is the item's label. Everything else is the dataset's own.
struct TimedDataset {
  Owned dataset;
  Owned op;
  std::shared_ptr<profile::OperatorHandle> handle;
  Owned read_many{};  ///< timed __getitems__; null until asked for

  static constexpr const char* kName = "headrace._core.TimedDataset";
  static constexpr auto kReferences =
      std::array{&TimedDataset::dataset, &TimedDataset::op, &TimedDataset::read_many};
  static constexpr auto kWrapped = &TimedDataset::dataset;
  static constexpr auto kOperator = &TimedDataset::op;
  static constexpr auto kOwnAttributes =
      std::to_array<std::string_view>({"__wrapped__", "headrace_operator", "__getitems__"});
  static constexpr bool kForwardsWrites = true;
  static const PyGetSetDef kAttributes[1];

  static PyObject* make(PyTypeObject* type, PyObject* args, PyObject*);
  static std::vector<PyType_Slot> slots();
  PyObject* reduce() { return reduced_to(dataset.get()); }
  PyObject* repr() { return PyObject_Repr(dataset.get()); }

  PyObject* timed_read_many(void*);
  PyObject* read_one(PyObject* key);
  PyObject* iterate();
  Py_ssize_t length() { return PyObject_Size(dataset.get()); }
  int contains(PyObject* item) { return PySequence_Contains(dataset.get(), item); }
  int truth() { return PyObject_IsTrue(dataset.get()); }
  Py_hash_t hash() { return PyObject_Hash(dataset.get()); }
  PyObject* call_dataset(PyObject* args, PyObject* kwargs) {
    return PyObject_Call(dataset.get(), args, kwargs);
  }
};

using DatasetType = HeapType<TimedDataset>;

/// An index that is a whole number names the item.
PyObject* TimedDataset::read_one(PyObject* key) {
  if (!handle->begin(whole_number(key))) return PyObject_GetItem(dataset.get(), key);
  PyObject* item = sampled(handle, [&] { return PyObject_GetItem(dataset.get(), key); });
  handle->end(item == nullptr);
  return item;
}

PyObject* TimedDataset::make(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* dataset = nullptr;
  PyObject* op = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &dataset, &op)) return nullptr;
  auto handle = operator_handle_of(op);
  if (handle == nullptr) return nullptr;
  return DatasetType::create(type, Owned::ref(dataset), Owned::ref(op), std::move(handle));
}

/// A batched read is one call of the operator as well.
PyObject* TimedDataset::timed_read_many(void*) {
  if (read_many) return Py_NewRef(read_many.get());
  Owned bare(PyObject_GetAttrString(dataset.get(), "__getitems__"));
  if (!bare || PyCallable_Check(bare.get()) == 0) return bare.release();
  read_many =
      Owned(CallableType::create(CallableType::type, std::move(bare), Owned::ref(op.get()), handle, true));
  return Py_XNewRef(read_many.get());
}

const PyGetSetDef TimedDataset::kAttributes[] = {
    {"__getitems__", MemberCall<&TimedDataset::timed_read_many>::call, nullptr, nullptr, nullptr}};

PyObject* TimedDataset::iterate() {
  const Owned iterator(PyObject_GetIter(dataset.get()));
  auto* type = reinterpret_cast<PyObject*>(IteratorType::type);
  return iterator ? PyObject_CallFunctionObjArgs(type, iterator.get(), op.get(), nullptr) : nullptr;
}

PyObject* bare_of(PyObject* object) {
  return Py_TYPE(object) == DatasetType::type ? DatasetType::contents(object).dataset.get() : object;
}
PyObject* add(PyObject* left, PyObject* right) { return PyNumber_Add(bare_of(left), bare_of(right)); }
PyObject* compare(PyObject* left, PyObject* right, int operation) {
  return PyObject_RichCompare(bare_of(left), bare_of(right), operation);
}

std::vector<PyType_Slot> TimedDataset::slots() {
  return {{Py_tp_iter, calls<&TimedDataset::iterate>()},
          {Py_tp_hash, calls<&TimedDataset::hash>()},
          {Py_tp_call, calls<&TimedDataset::call_dataset>()},
          {Py_tp_richcompare, slot(compare)},
          {Py_mp_subscript, calls<&TimedDataset::read_one>()},
          {Py_mp_length, calls<&TimedDataset::length>()},
          {Py_sq_contains, calls<&TimedDataset::contains>()},
          {Py_nb_bool, calls<&TimedDataset::truth>()},
          {Py_nb_add, slot(add)}};
}

}  // namespace

bool add_timed_calls(PyObject* module) {
  return CallableType::add(module) && IteratorType::add(module) && DatasetType::add(module);
}

}  // namespace headrace::python
