// What a loader's fetcher reads instead of the user's dataset while it fetches: each read is one call of the
// operator, and the index is the item's label. Everything else is the dataset's own.
#include <Python.h>
#include <structmember.h>

#include <cstring>

#include "crossing.h"
#include "function_sample.h"
#include "heap_type.h"

namespace headrace::python {
namespace {

struct TimedDataset {
  PyObject_HEAD PyObject* dataset;
  PyObject* op;
  PyObject* read_many;  ///< timed __getitems__; null until asked for
  PyObject* weakrefs;
  std::shared_ptr<profile::OperatorHandle> state;
  static constexpr auto kReferences =
      std::array{&TimedDataset::dataset, &TimedDataset::op, &TimedDataset::read_many};
};

using Type = HeapType<TimedDataset>;

/// An index that is a whole number names the item; below 0: anything else.
std::int64_t label_of(PyObject* key) {
  if (!PyLong_CheckExact(key)) return -1;
  int overflow = 0;
  const long long index = PyLong_AsLongLongAndOverflow(key, &overflow);
  return overflow != 0 ? -1 : index;
}

PyObject* read_one(PyObject* self, PyObject* key) {
  TimedDataset* timed = Type::cast(self);
  if (!timed->state->begin(label_of(key))) return PyObject_GetItem(timed->dataset, key);
  PyObject* item = nullptr;
  {
    const SampledCall sampled(timed->state);
    item = PyObject_GetItem(timed->dataset, key);
  }
  timed->state->end(item == nullptr);
  return item;
}

PyObject* timed_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* dataset = nullptr;
  PyObject* op = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &dataset, &op)) return nullptr;
  auto handle = operator_handle_of(op);
  if (handle == nullptr) return nullptr;
  TimedDataset* self = Type::make(type);
  if (self == nullptr) return nullptr;
  self->state = std::move(handle);
  self->dataset = Py_NewRef(dataset);
  self->op = Py_NewRef(op);
  return Type::object(self);
}

PyObject* core_type(const char* name) {
  const Owned module(PyImport_ImportModule("headrace._core"));
  return module ? PyObject_GetAttrString(module.get(), name) : nullptr;
}

/// A batched read is one call of the operator as well.
PyObject* timed_read_many(TimedDataset* timed, PyObject* name) {
  if (timed->read_many != nullptr) return Py_NewRef(timed->read_many);
  Owned bare(PyObject_GetAttr(timed->dataset, name));
  if (!bare || PyCallable_Check(bare.get()) == 0) return bare.release();
  const Owned type(core_type("TimedCallable"));
  if (!type) return nullptr;
  timed->read_many = PyObject_CallFunctionObjArgs(type.get(), bare.get(), timed->op, Py_True, nullptr);
  return Py_XNewRef(timed->read_many);
}

PyObject* timed_getattro(PyObject* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return nullptr;
  if (std::strcmp(text, "__wrapped__") == 0 || std::strcmp(text, "headrace_operator") == 0)
    return PyObject_GenericGetAttr(self, name);
  if (std::strcmp(text, "__getitems__") == 0) return timed_read_many(Type::cast(self), name);
  return PyObject_GetAttr(Type::cast(self)->dataset, name);
}

int timed_setattro(PyObject* self, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(Type::cast(self)->dataset, name, value);
}

PyObject* timed_iter(PyObject* self) {
  const Owned iterator(PyObject_GetIter(Type::cast(self)->dataset));
  const Owned type(iterator ? core_type("OperatorIterator") : nullptr);
  if (!type) return nullptr;
  return PyObject_CallFunctionObjArgs(type.get(), iterator.get(), Type::cast(self)->op, nullptr);
}

Py_ssize_t timed_length(PyObject* self) { return PyObject_Size(Type::cast(self)->dataset); }
int timed_contains(PyObject* self, PyObject* item) {
  return PySequence_Contains(Type::cast(self)->dataset, item);
}
int timed_bool(PyObject* self) { return PyObject_IsTrue(Type::cast(self)->dataset); }
PyObject* timed_add(PyObject* left, PyObject* right);
PyObject* timed_repr(PyObject* self) { return PyObject_Repr(Type::cast(self)->dataset); }
PyObject* timed_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return PyObject_Call(Type::cast(self)->dataset, args, kwargs);
}
Py_hash_t timed_hash(PyObject* self) { return PyObject_Hash(Type::cast(self)->dataset); }

bool is_timed(PyObject* object) { return Py_TYPE(object)->tp_hash == timed_hash; }
PyObject* bare_of(PyObject* object) { return is_timed(object) ? Type::cast(object)->dataset : object; }

PyObject* timed_add(PyObject* left, PyObject* right) { return PyNumber_Add(bare_of(left), bare_of(right)); }
PyObject* timed_compare(PyObject* left, PyObject* right, int operation) {
  return PyObject_RichCompare(bare_of(left), bare_of(right), operation);
}

/// Sent to another process the dataset goes alone.
PyObject* timed_reduce(PyObject* self, PyObject*) {
  const Owned module(PyImport_ImportModule("headrace.record.operator"));
  if (!module) return nullptr;
  const Owned itself(PyObject_GetAttrString(module.get(), "itself"));
  return itself ? Py_BuildValue("O(O)", itself.get(), Type::cast(self)->dataset) : nullptr;
}

PyMethodDef timed_methods[] = {
    {"__reduce__", timed_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef timed_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TimedDataset, weakrefs), READONLY, nullptr},
    {"__wrapped__", T_OBJECT_EX, offsetof(TimedDataset, dataset), READONLY, nullptr},
    {"headrace_operator", T_OBJECT_EX, offsetof(TimedDataset, op), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot timed_slots[] = {
    HEAP_TYPE_SLOTS(TimedDataset),
    {Py_tp_new, slot(timed_new)},
    {Py_tp_iter, slot(timed_iter)},
    {Py_tp_repr, slot(timed_repr)},
    {Py_tp_hash, slot(timed_hash)},
    {Py_tp_call, slot(timed_call)},
    {Py_tp_richcompare, slot(timed_compare)},
    {Py_tp_getattro, slot(timed_getattro)},
    {Py_tp_setattro, slot(timed_setattro)},
    {Py_mp_subscript, slot(read_one)},
    {Py_mp_length, slot(timed_length)},
    {Py_sq_contains, slot(timed_contains)},
    {Py_nb_bool, slot(timed_bool)},
    {Py_nb_add, slot(timed_add)},
    {Py_tp_methods, timed_methods},
    {Py_tp_members, timed_members},
    {0, nullptr},
};

PyType_Spec timed_spec = {
    "headrace._core.TimedDataset",           sizeof(TimedDataset), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, timed_slots,
};

}  // namespace

bool add_timed_dataset(PyObject* module) { return add_type(module, timed_spec, "TimedDataset"); }

}  // namespace headrace::python
