// Hooks around the puts and gets of a queue of threads: levels, waits, the training loop's gets.
//
// In C++ because each item passes up to six hooks: in Python they took 2 us.
#include <Python.h>

#include <memory>
#include <utility>

#include "crossing.h"
#include "headrace/metrics/clock.h"
#include "headrace/profile/probes.h"
#include "recording/heap_type.h"

namespace headrace::python {
namespace {

using metrics::Clock;
using metrics::WorkerState;

struct ThreadQueueHooks {
  Owned started;    ///< a list; empty: nothing is recorded yet
  Owned size;       ///< size() -> int, or a container
  Owned loop_name;  ///< loop_name() -> str, of the calling thread's loop
  Owned enter;      ///< enter(), before a get that may be the training loop's
  Owned leave;      ///< leave(item, failed), after a get of the queue that the training loop has
  Owned room_left;  ///< room_left() -> int, where the queue itself has no limit; else None
  std::shared_ptr<profile::QueueHandle> handle;
  Py_ssize_t room = 0;         ///< 0: no limit
  std::int64_t waited_ns = 0;  ///< for room, before the next put; only its one producer waits so
  bool is_sink = false;        ///< guarded by the interpreter lock

  static constexpr const char* kName = "headrace._core.ThreadQueueHooks";
  static constexpr auto kReferences =
      std::array{&ThreadQueueHooks::started, &ThreadQueueHooks::size,  &ThreadQueueHooks::loop_name,
                 &ThreadQueueHooks::enter,   &ThreadQueueHooks::leave, &ThreadQueueHooks::room_left};
  static const PyMethodDef kMethods[9];

  static PyObject* make(PyTypeObject* type, PyObject* args, PyObject*);

  using Values = PyObject* const*;
  PyObject* before_put(Values, Py_ssize_t);
  PyObject* got_room(Values, Py_ssize_t);
  PyObject* after_put(Values, Py_ssize_t);
  PyObject* before_get(Values, Py_ssize_t);
  PyObject* after_get(Values args, Py_ssize_t count);
  PyObject* get_failed(Values, Py_ssize_t);
  PyObject* did_put(Values args, Py_ssize_t count);
  PyObject* did_get(Values args, Py_ssize_t count);
  PyObject* become_sink(PyObject*);

  bool has_started() const { return PyList_GET_SIZE(started.get()) > 0; }
  Py_ssize_t size_now() const;
  int is_full() const;
  void begin_wait(WorkerState state);
  std::int64_t end_wait();
  PyObject* left(PyObject* item, PyObject* failed);
  PyObject* transferred(PyObject* item, bool is_put);
};

/// The queue in which this thread waits. One at a time, but a destructor may use others meanwhile.
thread_local constinit struct {
  const void* queue = nullptr;
  std::int64_t since_ns = 0;
} waiting;

/// Result of a function without arguments; below 0 with an exception set.
Py_ssize_t number_from(PyObject* function) {
  const Owned number(PyObject_CallNoArgs(function));
  return number ? PyLong_AsSsize_t(number.get()) : -1;
}

/// Items in the queue now; below 0 with an exception set.
Py_ssize_t ThreadQueueHooks::size_now() const {
  return PyCallable_Check(size.get()) ? number_from(size.get()) : PyObject_Size(size.get());
}

/// A put would wait: 1, or 0; below 0 with an exception set.
int ThreadQueueHooks::is_full() const {
  const bool counts_room = room_left.get() != Py_None;
  if (!counts_room && room <= 0) return 0;
  const Py_ssize_t number = counts_room ? number_from(room_left.get()) : size_now();
  if (number < 0 && PyErr_Occurred() != nullptr) return -1;
  return counts_room ? number <= 0 : number >= room;
}

/// The mark after the last item: None or a StopIteration, by custom, also as the first of a tuple.
bool is_end_mark(PyObject* item) {
  const auto is_stop = [](PyObject* object) {
    return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(PyExc_StopIteration)) != 0;
  };
  if (item == Py_None || is_stop(item)) return true;
  return PyTuple_Check(item) && PyTuple_GET_SIZE(item) > 0 && is_stop(PyTuple_GET_ITEM(item, 0));
}

void ThreadQueueHooks::begin_wait(WorkerState state) {
  waiting = {this, Clock::now_ns()};
  handle->waiting(state);
}

/// How long; 0: it does not wait here.
std::int64_t ThreadQueueHooks::end_wait() {
  if (waiting.queue != this) return 0;
  waiting.queue = nullptr;
  handle->waited();
  return Clock::now_ns() - waiting.since_ns;
}

PyObject* ThreadQueueHooks::before_put(Values, Py_ssize_t) {
  if (!has_started()) Py_RETURN_NONE;
  const int full = is_full();
  if (full < 0) return nullptr;
  if (full > 0) begin_wait(WorkerState::blocked_out);
  Py_RETURN_NONE;
}

PyObject* ThreadQueueHooks::got_room(Values, Py_ssize_t) {
  waited_ns += end_wait();
  Py_RETURN_NONE;
}

PyObject* ThreadQueueHooks::after_put(Values, Py_ssize_t) {
  end_wait();
  Py_RETURN_NONE;
}

PyObject* ThreadQueueHooks::before_get(Values, Py_ssize_t) {
  if (!has_started() || is_sink) {
    if (!Owned(PyObject_CallNoArgs(enter.get()))) forget_failure();
    if (PyErr_Occurred() != nullptr) return nullptr;
    if (!has_started()) Py_RETURN_NONE;
  }
  const Py_ssize_t count = size_now();
  if (count < 0) return nullptr;
  if (count == 0) begin_wait(WorkerState::blocked_in);
  Py_RETURN_NONE;
}

PyObject* ThreadQueueHooks::left(PyObject* item, PyObject* failed) {
  end_wait();
  if (!is_sink) Py_RETURN_NONE;
  PyObject* const arguments[] = {item, failed};
  return PyObject_Vectorcall(leave.get(), arguments, std::size(arguments), nullptr);
}

PyObject* ThreadQueueHooks::after_get(Values args, Py_ssize_t count) {
  return left(count > 0 ? args[0] : Py_None, Py_False);
}

PyObject* ThreadQueueHooks::get_failed(Values, Py_ssize_t) { return left(Py_None, Py_True); }

PyObject* ThreadQueueHooks::transferred(PyObject* item, bool is_put) {
  if (!has_started()) Py_RETURN_NONE;
  std::int64_t its_wait_ns = end_wait();
  if (is_put) its_wait_ns += std::exchange(waited_ns, 0);
  const Py_ssize_t level = size_now();
  if (level < 0) return nullptr;
  Owned name;
  const char* loop = nullptr;
  if (handle->wants_loop_name()) {
    name = Owned(PyObject_CallNoArgs(loop_name.get()));
    loop = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
    if (loop == nullptr) forget_failure();
    if (PyErr_Occurred() != nullptr) return nullptr;
  }
  const bool counts = !is_end_mark(item);
  if (is_put) {
    handle->put(level, its_wait_ns, counts, loop);
  } else {
    handle->get(level, its_wait_ns, counts, loop);
  }
  Py_RETURN_NONE;
}

PyObject* ThreadQueueHooks::did_put(Values args, Py_ssize_t count) {
  return transferred(count > 1 ? args[1] : Py_None, true);
}

PyObject* ThreadQueueHooks::did_get(Values args, Py_ssize_t count) {
  return transferred(count > 0 ? args[0] : Py_None, false);
}

PyObject* ThreadQueueHooks::become_sink(PyObject*) {
  is_sink = true;
  Py_RETURN_NONE;
}

PyObject* ThreadQueueHooks::make(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* handle = nullptr;
  PyObject* started = nullptr;
  PyObject* size = nullptr;
  PyObject* callables[] = {Py_None, Py_None, Py_None, Py_None};
  Py_ssize_t room = 0;
  if (!PyArg_ParseTuple(args, "OnO!O|OOOO", &handle, &room, &PyList_Type, &started, &size, &callables[0],
                        &callables[1], &callables[2], &callables[3])) {
    return nullptr;
  }
  auto queue = thread_queue_handle_of(handle);
  if (queue == nullptr) return nullptr;
  return HeapType<ThreadQueueHooks>::create(
      type, Owned::ref(started), Owned::ref(size), Owned::ref(callables[0]), Owned::ref(callables[1]),
      Owned::ref(callables[2]), Owned::ref(callables[3]), std::move(queue), room);
}

template <auto Member>
PyMethodDef fast(const char* name) {
  return {name, method<Member>(), METH_FASTCALL, nullptr};
}

const PyMethodDef ThreadQueueHooks::kMethods[] = {
    fast<&ThreadQueueHooks::before_put>("before_put"),
    fast<&ThreadQueueHooks::after_put>("after_put"),
    fast<&ThreadQueueHooks::got_room>("got_room"),
    fast<&ThreadQueueHooks::before_get>("before_get"),
    fast<&ThreadQueueHooks::after_get>("after_get"),
    fast<&ThreadQueueHooks::get_failed>("get_failed"),
    fast<&ThreadQueueHooks::did_put>("did_put"),
    fast<&ThreadQueueHooks::did_get>("did_get"),
    {"become_sink", method<&ThreadQueueHooks::become_sink>(), METH_NOARGS, nullptr},
};

}  // namespace

bool add_thread_queue_hooks(PyObject* module) { return HeapType<ThreadQueueHooks>::add(module); }

}  // namespace headrace::python
