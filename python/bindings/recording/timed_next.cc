// GetNext of a training loop, timed: the iterator of a wrapped loader, and `__next__` of a loader's own iterator class.
#include <Python.h>

#include <optional>

#include "crossing.h"
#include "headrace/profile/iterator_watch.h"
#include "recording/batch_contents.h"
#include "recording/heap_type.h"
#include "recording/watched_batches.h"

namespace headrace::python {
namespace {

/// Shows a batch to whoever watches, in no time of the step; `loop`: who took it. False: the program was interrupted
/// meanwhile, and the exception is set. Inlined: nobody watches most loops, and the call would cost each item.
template <class Loop>
[[gnu::always_inline]] inline bool shown(Loop& loop, const profile::LoaderHandle& loader, PyObject* iterator,
                                         std::int64_t number, int worker, PyObject* batch) {
  const BatchView view = view_of_batch(loop);
  if (view == BatchView::none) return true;
  const std::int64_t spent = show_batch(loader, iterator, number, worker, batch, view);
  if (spent < 0) return false;
  loop.exclude(spent);
  return true;
}

// --- a wrapped loader ---

/// The iterator that a wrapped loader hands out: yields what the user's iterator yields and times every GetNext.
struct TimedIterator {
  Owned owner;  ///< keeps the wrapped loader's record open
  /// Called before each GetNext: is the awaited batch ready? Where it answers None, it is asked again after it:
  /// was it? null: the recorded queues tell.
  Owned ready;
  std::shared_ptr<profile::LoopRecorder> recorder;
  std::shared_ptr<profile::LoaderHandle> loader;
  Owned iterator{};
  iternextfunc next_item = nullptr;  ///< of the iterator's class

  static constexpr const char* kName = "headrace._core.TimedIterator";
  static constexpr auto kReferences =
      std::array{&TimedIterator::iterator, &TimedIterator::owner, &TimedIterator::ready};
  static constexpr auto kWrapped = &TimedIterator::iterator;
  /// send, throw, close, gi_frame, _workers ... are those of the user's iterator.
  static constexpr auto kOwnAttributes = std::to_array<std::string_view>(
      {"__class__", "__next__", "__iter__", "__wrapped__", "__length_hint__"});
  static const PyMethodDef kMethods[1];

  static PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs);
  PyObject* next();
  PyObject* length_hint(PyObject*);
  void before_end() { recorder->end_loop(); }
};

using IteratorType = HeapType<TimedIterator>;

/// 1 or 0; -1: not known, or the adapter's question failed (which must not disturb the loop). An interrupt, which
/// is the loop's, stays set.
int ask_ready(PyObject* ready) {
  const Owned answer(calling_python([&] { return PyObject_CallNoArgs(ready); }));
  if (answer.get() == Py_None) return -1;
  const int truth = answer ? PyObject_IsTrue(answer.get()) : -1;
  if (truth < 0) forget_failure();
  return truth;
}

PyObject* TimedIterator::next() {
  int is_ready = ready ? ask_ready(ready.get()) : -1;
  if (is_ready < 0 && PyErr_Occurred() != nullptr) return nullptr;
  recorder->begin_wait();
  PyObject* item = next_item(iterator.get());
  const bool failed = next_failed(item);
  if (is_ready < 0 && ready && item != nullptr) is_ready = ask_ready(ready.get());
  recorder->end_wait(item != nullptr, failed, is_ready);
  if (ready && item != nullptr && PyErr_Occurred() != nullptr) {
    Py_DECREF(item);
    return nullptr;
  }
  if (item != nullptr && recorder->asks_for_size()) recorder->tell_size(contents_of(item).bytes);
  if (item == nullptr || shown(*recorder, *loader, IteratorType::object(*this), -1, -1, item)) return item;
  Py_DECREF(item);
  return nullptr;
}

PyObject* TimedIterator::make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* loader = nullptr;
  PyObject* iterable = nullptr;
  PyObject* owner = nullptr;
  PyObject* ready = Py_None;
  if (!parse(args, kwargs, "OOO|O", {"loader", "iterable", "owner", "ready", nullptr}, &loader, &iterable,
             &owner, &ready))
    return nullptr;
  auto handle = loader_handle_of(loader);
  if (handle == nullptr) return nullptr;
  // The loop begins before iter(): the start of a loader's workers belongs to its first batch.
  auto recorder = std::make_shared<profile::LoopRecorder>(handle);
  Owned made(IteratorType::create(type, Owned::ref(owner), Owned::ref(ready == Py_None ? nullptr : ready),
                                  std::move(recorder), std::move(handle)));
  if (!made) return nullptr;
  TimedIterator& self = IteratorType::contents(made.get());
  self.iterator = Owned(calling_python([&] { return PyObject_GetIter(iterable); }));
  if (!self.iterator) return nullptr;
  self.next_item = Py_TYPE(self.iterator.get())->tp_iternext;
  return made.release();
}

PyObject* TimedIterator::length_hint(PyObject*) {
  const Py_ssize_t length = PyObject_LengthHint(iterator.get(), 0);
  return length < 0 ? nullptr : PyLong_FromSsize_t(length);
}

const PyMethodDef TimedIterator::kMethods[] = {
    {"__length_hint__", method<&TimedIterator::length_hint>(), METH_NOARGS, nullptr}};

// --- a loader's own iterator class ---

/// `__next__` of a loader's iterator class. It stands in a subclass of the loader's own iterator, finds the watch in
/// the iterator's attributes, and has no Python frame.
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
  const int worker = number >= 0 ? watch->made_by() : -1;
  if (batch && !shown(*watch, *watch->loader(), iterator, number, worker, batch.get())) return nullptr;
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
  return watch_name != nullptr && received_name != nullptr && HeapType<TimedNext>::add(module) &&
         IteratorType::add(module);
}

}  // namespace headrace::python
