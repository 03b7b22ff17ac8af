// What happens around the puts and gets of a queue of threads: levels, waits, the training loop's gets.
//
// In C++ because each item passes up to six hooks: in Python they took 2 us.
#include <Python.h>
#include <structmember.h>

#include <atomic>
#include <memory>
#include <utility>

#include "crossing.h"
#include "headrace/metrics/clock.h"
#include "headrace/profile/probes.h"
#include "heap_type.h"

namespace headrace::python {
namespace {

using metrics::Clock;
using metrics::WorkerState;

struct QueueState {
  std::shared_ptr<profile::QueueHandle> handle;
  Py_ssize_t room = 0;         ///< 0: no limit
  std::int64_t waited_ns = 0;  ///< for room, before the next put; only its one producer waits so
  std::atomic<bool> is_sink{false};
};

struct ThreadQueueHooks {
  PyObject_HEAD PyObject* started;  ///< a list; empty: nothing is recorded yet
  PyObject* size;                   ///< size() -> int, or a container
  PyObject* loop_name;              ///< loop_name() -> str, of the calling thread's loop
  PyObject* enter;                  ///< enter(), before a get that may be the training loop's
  PyObject* leave;      ///< leave(item, failed), after a get of the queue that the training loop has
  PyObject* room_left;  ///< room_left() -> int, where the queue itself has no limit; else None
  PyObject* weakrefs;
  QueueState state;
  static constexpr auto kReferences =
      std::array{&ThreadQueueHooks::started, &ThreadQueueHooks::size,  &ThreadQueueHooks::loop_name,
                 &ThreadQueueHooks::enter,   &ThreadQueueHooks::leave, &ThreadQueueHooks::room_left};
};

using Type = HeapType<ThreadQueueHooks>;

/// The queue in which this thread waits. One at a time, but a destructor may use others meanwhile.
thread_local constinit struct {
  const void* queue = nullptr;
  std::int64_t since_ns = 0;
} waiting;

bool has_started(const ThreadQueueHooks* self) { return PyList_GET_SIZE(self->started) > 0; }

/// What a function without arguments returns; below 0 with an exception set.
Py_ssize_t number_from(PyObject* function) {
  const Owned number(PyObject_CallNoArgs(function));
  return number ? PyLong_AsSsize_t(number.get()) : -1;
}

/// Items in the queue now; below 0 with an exception set.
Py_ssize_t size_of(const ThreadQueueHooks* self) {
  return PyCallable_Check(self->size) ? number_from(self->size) : PyObject_Size(self->size);
}

/// A put would wait: 1, or 0; below 0 with an exception set.
int is_full(const ThreadQueueHooks* self) {
  const bool counts_room = self->room_left != Py_None;
  if (!counts_room && self->state.room <= 0) return 0;
  const Py_ssize_t number = counts_room ? number_from(self->room_left) : size_of(self);
  if (number < 0 && PyErr_Occurred() != nullptr) return -1;
  return counts_room ? number <= 0 : number >= self->state.room;
}

/// The mark after the last item: None or a StopIteration, by custom, also as the first of a tuple.
bool is_end_mark(PyObject* item) {
  const auto is_stop = [](PyObject* object) {
    return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(PyExc_StopIteration)) != 0;
  };
  if (item == Py_None || is_stop(item)) return true;
  return PyTuple_Check(item) && PyTuple_GET_SIZE(item) > 0 && is_stop(PyTuple_GET_ITEM(item, 0));
}

void begin_wait(ThreadQueueHooks* self, WorkerState state) {
  waiting = {self, Clock::now_ns()};
  self->state.handle->waiting(state);
}

/// How long; 0: it does not wait here.
std::int64_t end_wait(ThreadQueueHooks* self) {
  if (waiting.queue != self) return 0;
  waiting.queue = nullptr;
  self->state.handle->waited();
  return Clock::now_ns() - waiting.since_ns;
}

PyObject* before_put(PyObject* object, PyObject* const*, Py_ssize_t) {
  ThreadQueueHooks* self = Type::cast(object);
  if (!has_started(self)) Py_RETURN_NONE;
  const int full = is_full(self);
  if (full < 0) return nullptr;
  if (full > 0) begin_wait(self, WorkerState::blocked_out);
  Py_RETURN_NONE;
}

PyObject* got_room(PyObject* object, PyObject* const*, Py_ssize_t) {
  ThreadQueueHooks* self = Type::cast(object);
  self->state.waited_ns += end_wait(self);
  Py_RETURN_NONE;
}

PyObject* after_put(PyObject* object, PyObject* const*, Py_ssize_t) {
  end_wait(Type::cast(object));
  Py_RETURN_NONE;
}

PyObject* before_get(PyObject* object, PyObject* const*, Py_ssize_t) {
  ThreadQueueHooks* self = Type::cast(object);
  if (!has_started(self) || self->state.is_sink.load(std::memory_order_relaxed)) {
    if (!Owned(PyObject_CallNoArgs(self->enter))) PyErr_Clear();
    if (!has_started(self)) Py_RETURN_NONE;
  }
  const Py_ssize_t size = size_of(self);
  if (size < 0) return nullptr;
  if (size == 0) begin_wait(self, WorkerState::blocked_in);
  Py_RETURN_NONE;
}

PyObject* left(PyObject* object, PyObject* item, PyObject* failed) {
  ThreadQueueHooks* self = Type::cast(object);
  end_wait(self);
  if (!self->state.is_sink.load(std::memory_order_relaxed)) Py_RETURN_NONE;
  PyObject* const arguments[] = {item, failed};
  return PyObject_Vectorcall(self->leave, arguments, std::size(arguments), nullptr);
}

PyObject* after_get(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  return left(object, count > 0 ? args[0] : Py_None, Py_False);
}

PyObject* get_failed(PyObject* object, PyObject* const*, Py_ssize_t) {
  return left(object, Py_None, Py_True);
}

PyObject* transferred(ThreadQueueHooks* self, PyObject* item, bool is_put) {
  if (!has_started(self)) Py_RETURN_NONE;
  std::int64_t waited_ns = end_wait(self);
  if (is_put) waited_ns += std::exchange(self->state.waited_ns, 0);
  const Py_ssize_t level = size_of(self);
  if (level < 0) return nullptr;
  profile::QueueHandle& handle = *self->state.handle;
  Owned name;
  const char* loop = nullptr;
  if (handle.wants_loop_name()) {
    name = Owned(PyObject_CallNoArgs(self->loop_name));
    loop = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
    if (loop == nullptr) PyErr_Clear();
  }
  const bool counts = !is_end_mark(item);
  if (is_put) {
    handle.put(level, waited_ns, counts, loop);
  } else {
    handle.get(level, waited_ns, counts, loop);
  }
  Py_RETURN_NONE;
}

PyObject* did_put(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  return transferred(Type::cast(object), count > 1 ? args[1] : Py_None, true);
}

PyObject* did_get(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  return transferred(Type::cast(object), count > 0 ? args[0] : Py_None, false);
}

PyObject* become_sink(PyObject* object, PyObject*) {
  Type::cast(object)->state.is_sink = true;
  Py_RETURN_NONE;
}

PyObject* hooks_new(PyTypeObject* type, PyObject* args, PyObject*) {
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
  ThreadQueueHooks* self = Type::make(type);
  if (self == nullptr) return nullptr;
  self->started = Py_NewRef(started);
  self->size = Py_NewRef(size);
  self->loop_name = Py_NewRef(callables[0]);
  self->enter = Py_NewRef(callables[1]);
  self->leave = Py_NewRef(callables[2]);
  self->room_left = Py_NewRef(callables[3]);
  self->state.handle = std::move(queue);
  self->state.room = room;
  return Type::object(self);
}

template <class Function>
PyCFunction fast(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef hooks_methods[] = {
    {"before_put", fast(before_put), METH_FASTCALL, nullptr},
    {"after_put", fast(after_put), METH_FASTCALL, nullptr},
    {"got_room", fast(got_room), METH_FASTCALL, nullptr},
    {"before_get", fast(before_get), METH_FASTCALL, nullptr},
    {"after_get", fast(after_get), METH_FASTCALL, nullptr},
    {"get_failed", fast(get_failed), METH_FASTCALL, nullptr},
    {"did_put", fast(did_put), METH_FASTCALL, nullptr},
    {"did_get", fast(did_get), METH_FASTCALL, nullptr},
    {"become_sink", become_sink, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef hooks_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ThreadQueueHooks, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot hooks_slots[] = {
    HEAP_TYPE_SLOTS(ThreadQueueHooks),
    {Py_tp_new, slot(hooks_new)},
    {Py_tp_methods, hooks_methods},
    {Py_tp_members, hooks_members},
    {0, nullptr},
};

PyType_Spec hooks_spec = {
    "headrace._core.ThreadQueueHooks",
    sizeof(ThreadQueueHooks),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    hooks_slots,
};

}  // namespace

bool add_thread_queue_hooks(PyObject* module) { return add_type(module, hooks_spec, "ThreadQueueHooks"); }

}  // namespace headrace::python
