// __next__ of a loader's iterator class, timed as GetNext. It stands in a subclass of the loader's own
// iterator, finds the watch in the iterator's attributes, and has no Python frame.
#include <Python.h>

#include <optional>

#include "crossing.h"
#include "headrace/profile/iterator_watch.h"
#include "recording/batch_contents.h"
#include "recording/heap_type.h"
#include "recording/watched_batches.h"

namespace headrace::python {
namespace {

struct TimedNext {
  Owned original;  ///< __next__ of the loader's own class

  static constexpr const char* kName = "headrace._core.TimedNext";
  static constexpr auto kReferences = std::array{&TimedNext::original};
  static constexpr auto kWrapped = &TimedNext::original;
  static constexpr bool kIsMethod = true;

  static PyObject* make(PyTypeObject* type, PyObject* args, PyObject*);
  PyObject* call(const Arguments& arguments);
};

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
  const Owned measure = imported("headrace.loaders.torch_dataloader.handoff_cost", "measure");
  const Owned found(measure ? calling_python([&] { return PyObject_CallOneArg(measure.get(), batch); })
                            : nullptr);
  profile::HandoffSample sample;
  const char* type = "";
  if (found && PyTuple_Check(found.get()) != 0 &&
      PyArg_ParseTuple(found.get(), "LLLs", &sample.message_bytes, &sample.tensors, &sample.pickle_cpu_ns,
                       &type) == 0) {
    sample.pickle_cpu_ns = -1;
  }
  forget_failure();
  if (PyErr_Occurred() != nullptr) return false;
  watch.tell_handoff(sample, type, metrics::Clock::now_ns() - began);
  return true;
}

PyObject* TimedNext::call(const Arguments& arguments) {
  if (arguments.count() != 1) return arguments.pass_to(original.get());
  PyObject* iterator = arguments.at(0);
  const Owned held(PyObject_GetAttr(iterator, watch_name));
  profile::IteratorWatch* watch = held ? iterator_watch_of(held.get()) : nullptr;
  if (watch == nullptr) {
    PyErr_Clear();
    return arguments.pass_to(original.get());
  }
  watch->begin_wait();
  Owned batch(arguments.pass_to(original.get()));
  const bool failed = next_failed(batch.get());
  std::optional<KeptError> error;
  if (!batch) error.emplace();
  const bool counted = watch->tracker() != nullptr && (batch || failed);
  const std::int64_t number = counted ? number_of_yielded(iterator, *watch->tracker()) : -1;
  watch->end_wait(static_cast<bool>(batch), failed, number);
  if (error) error->restore();
  if (batch && watch->asks_for_size()) {
    watch->tell_size(contents_of(batch.get()).bytes);
    if (watch->asks_for_handoff() && !tell_handoff(*watch, batch.get())) return nullptr;
  }
  const BatchView view = batch ? view_of_batch(*watch) : BatchView::none;
  if (view != BatchView::none) {
    const int worker = number >= 0 ? watch->made_by() : -1;
    const std::int64_t spent = show_batch(*watch->loader(), iterator, number, worker, batch.get(), view);
    if (spent < 0) return nullptr;
    watch->exclude(spent);
  }
  return batch.release();
}

PyObject* TimedNext::make(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* original = nullptr;
  if (!PyArg_ParseTuple(args, "O", &original)) return nullptr;
  return HeapType<TimedNext>::create(type, Owned::ref(original));
}

}  // namespace

bool add_timed_next(PyObject* module) {
  watch_name = PyUnicode_InternFromString("_headrace_watch");
  received_name = PyUnicode_InternFromString("_rcvd_idx");
  return watch_name != nullptr && received_name != nullptr && HeapType<TimedNext>::add(module);
}

}  // namespace headrace::python
