// __next__ of a loader's iterator class, timed as GetNext. It stands in a subclass of the loader's own
// iterator, finds the watch in the iterator's attributes, and has no Python frame.
#include <Python.h>
#include <structmember.h>

#include "batch_contents.h"
#include "crossing.h"
#include "headrace/profile/iterator_watch.h"
#include "heap_type.h"

namespace headrace::python {
namespace {

struct TimedNext {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* original;  ///< __next__ of the loader's own class
  PyObject* weakrefs;
  struct {
  } state;
  static constexpr auto kReferences = std::array{&TimedNext::original};
};

using Type = HeapType<TimedNext>;

PyObject* watch_name = nullptr;
PyObject* received_name = nullptr;

/// The loader counts what it has handed out; in completion order the batch that came last is the one.
std::int64_t number_of_yielded(PyObject* iterator, const profile::BatchTracker& tracker) {
  if (!tracker.shape().ordered) return tracker.last_received();
  const Owned next(PyObject_GetAttr(iterator, received_name));
  const long long number = next ? PyLong_AsLongLong(next.get()) : 0;
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  return number - 1;
}

/// Samples what a worker would spend on passing this batch on. False only where the program is interrupted
/// meanwhile, as it would be inside next().
bool tell_handoff(profile::IteratorWatch& watch, PyObject* batch) {
  const std::int64_t began = metrics::Clock::now_ns();
  const Owned module(PyImport_ImportModule("headrace.loaders.torch_dataloader.handoff_cost"));
  const Owned found(module ? PyObject_CallMethod(module.get(), "measure", "O", batch) : nullptr);
  profile::HandoffSample sample;
  const char* type = "";
  if (found && PyTuple_Check(found.get()) != 0 &&
      PyArg_ParseTuple(found.get(), "LLLs", &sample.message_bytes, &sample.tensors, &sample.pickle_cpu_ns,
                       &type) == 0) {
    sample.pickle_cpu_ns = -1;
  }
  if (PyErr_Occurred() != nullptr) {
    if (PyErr_ExceptionMatches(PyExc_Exception) == 0) return false;
    PyErr_Clear();
  }
  watch.tell_handoff(sample, type, metrics::Clock::now_ns() - began);
  return true;
}

PyObject* timed_vectorcall(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  PyObject* original = Type::cast(self)->original;
  if (PyVectorcall_NARGS(nargsf) != 1) return PyObject_Vectorcall(original, args, nargsf, kwnames);
  PyObject* iterator = args[0];
  const Owned held(PyObject_GetAttr(iterator, watch_name));
  profile::IteratorWatch* watch = held ? iterator_watch_of(held.get()) : nullptr;
  if (watch == nullptr) {
    PyErr_Clear();
    return calling_python([&] { return PyObject_Vectorcall(original, args, nargsf, kwnames); });
  }
  watch->begin_wait();
  PyObject* batch = calling_python([&] { return PyObject_Vectorcall(original, args, nargsf, kwnames); });
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* trace = nullptr;
  bool failed = false;
  if (batch == nullptr) {
    failed = PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_StopIteration) == 0;
    PyErr_Fetch(&type, &value, &trace);
  }
  const bool counted = watch->tracker() != nullptr && (batch != nullptr || failed);
  const std::int64_t number = counted ? number_of_yielded(iterator, *watch->tracker()) : -1;
  watch->end_wait(batch != nullptr, failed, number);
  if (batch == nullptr) PyErr_Restore(type, value, trace);
  if (batch != nullptr) {
    if (auto relay = watch->offer_relay()) look_for_relay(std::move(relay), iterator, batch);
  }
  if (batch != nullptr && watch->asks_for_size()) {
    watch->tell_size(contents_of(batch).bytes);
    if (watch->asks_for_handoff() && !tell_handoff(*watch, batch)) {
      Py_DECREF(batch);
      return nullptr;
    }
  }
  return batch;
}

PyObject* timed_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* original = nullptr;
  if (!PyArg_ParseTuple(args, "O", &original)) return nullptr;
  TimedNext* self = Type::make(type);
  if (self == nullptr) return nullptr;
  self->vectorcall = timed_vectorcall;
  self->original = Py_NewRef(original);
  return Type::object(self);
}

PyObject* timed_descr_get(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

PyMemberDef timed_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(TimedNext, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TimedNext, weakrefs), READONLY, nullptr},
    {"__wrapped__", T_OBJECT_EX, offsetof(TimedNext, original), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot timed_slots[] = {
    HEAP_TYPE_SLOTS(TimedNext),
    {Py_tp_new, slot(timed_new)},
    {Py_tp_call, slot(PyVectorcall_Call)},
    {Py_tp_descr_get, slot(timed_descr_get)},
    {Py_tp_members, timed_members},
    {0, nullptr},
};

PyType_Spec timed_spec = {
    "headrace._core.TimedNext",
    sizeof(TimedNext),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    timed_slots,
};

}  // namespace

bool add_timed_next(PyObject* module) {
  watch_name = PyUnicode_InternFromString("_headrace_watch");
  received_name = PyUnicode_InternFromString("_rcvd_idx");
  return watch_name != nullptr && received_name != nullptr && add_type(module, timed_spec, "TimedNext");
}

}  // namespace headrace::python
