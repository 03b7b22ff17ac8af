// The iterator that a wrapped loader hands out: yields what the user's iterator yields and times every
// GetNext.
#include <Python.h>

#include "crossing.h"
#include "recording/batch_contents.h"
#include "recording/heap_type.h"
#include "recording/watched_batches.h"

namespace headrace::python {
namespace {

struct TimedIterator {
  Owned owner;  ///< keeps the wrapped loader's record open
  /// Called before each GetNext: is the awaited batch ready? Where it answers None, it is asked again after it:
  /// was it? null: the recorded queues tell.
  Owned ready;
  std::shared_ptr<profile::LoopRecorder> recorder;
  std::shared_ptr<profile::LoaderHandle> loader;
  Owned iterator{};
  iternextfunc next_item = nullptr;  ///< of the iterator's class
  bool delivered = false;

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

using Type = HeapType<TimedIterator>;

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
  const BatchView view = item != nullptr ? view_of_batch(*recorder) : BatchView::none;
  if (view != BatchView::none) {
    const std::int64_t spent = show_batch(*loader, Type::object(*this), -1, -1, item, view);
    if (spent < 0) {
      Py_DECREF(item);
      return nullptr;
    }
    recorder->exclude(spent);
  }
  return item;
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
  Owned made(Type::create(type, Owned::ref(owner), Owned::ref(ready == Py_None ? nullptr : ready),
                          std::move(recorder), std::move(handle)));
  if (!made) return nullptr;
  TimedIterator& self = Type::contents(made.get());
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

}  // namespace

bool add_timed_iterator(PyObject* module) { return Type::add(module); }

}  // namespace headrace::python
