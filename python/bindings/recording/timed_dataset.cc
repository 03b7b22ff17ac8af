// Stand-in for the user's dataset while a loader's fetcher fetches: each read is one call of the
// operator, and the index is the item's label. Everything else is the dataset's own.
#include <Python.h>

#include "crossing.h"
#include "recording/function_sample.h"
#include "recording/heap_type.h"

namespace headrace::python {
namespace {

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

using Type = HeapType<TimedDataset>;

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
  return Type::create(type, Owned::ref(dataset), Owned::ref(op), std::move(handle));
}

/// A batched read is one call of the operator as well.
PyObject* TimedDataset::timed_read_many(void*) {
  if (read_many) return Py_NewRef(read_many.get());
  Owned bare(PyObject_GetAttrString(dataset.get(), "__getitems__"));
  if (!bare || PyCallable_Check(bare.get()) == 0) return bare.release();
  const Owned type = imported("headrace._core", "TimedCallable");
  if (!type) return nullptr;
  read_many = Owned(PyObject_CallFunctionObjArgs(type.get(), bare.get(), op.get(), Py_True, nullptr));
  return Py_XNewRef(read_many.get());
}

const PyGetSetDef TimedDataset::kAttributes[] = {
    {"__getitems__", MemberCall<&TimedDataset::timed_read_many>::call, nullptr, nullptr, nullptr}};

PyObject* TimedDataset::iterate() {
  const Owned iterator(PyObject_GetIter(dataset.get()));
  const Owned type = iterator ? imported("headrace._core", "OperatorIterator") : Owned();
  return type ? PyObject_CallFunctionObjArgs(type.get(), iterator.get(), op.get(), nullptr) : nullptr;
}

PyObject* bare_of(PyObject* object) {
  return Py_TYPE(object) == Type::type ? Type::contents(object).dataset.get() : object;
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

bool add_timed_dataset(PyObject* module) { return Type::add(module); }

}  // namespace headrace::python
