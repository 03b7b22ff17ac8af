// headrace.Queue: the methods of queue.Queue on the native instrumented queue.
#include <Python.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <string>

#include "crossing.h"
#include "headrace/profile/process_identity.h"
#include "headrace/queues/blocking_queue.h"
#include "recording/heap_type.h"

namespace headrace::python {
namespace {

using queues::CallContext;
using queues::EventCount;
using queues::Instrumented;
using queues::QueueStatus;
using Native = queues::BlockingQueue<PyObject*, Instrumented>;
using Deadline = EventCount::Clock::time_point;

struct Members {
  explicit Members(const std::string& name, std::int64_t capacity)
      : handle(std::make_shared<profile::QueueHandle>(name, capacity)),
        native(capacity, Instrumented(handle)) {}
  std::shared_ptr<profile::QueueHandle> handle;
  Native native;
  EventCount all_done;
  std::atomic<std::int64_t> unfinished{0};
  std::atomic<PyObject*> end_mark{nullptr};  ///< beside None: the sentinel of iter(q.get, sentinel)
};

/// At the interpreter's end a thread may be waiting in it.
struct DeleteUnlessEnding {
  void operator()(Members* members) const {
    if (!interpreter_is_ending()) delete members;
  }
};

struct Queue {
  PyObject* dict = nullptr;
  std::unique_ptr<Members, DeleteUnlessEnding> members{};  ///< null before __init__

  static constexpr const char* kName = "headrace._core.Queue";
  static constexpr std::array<Owned Queue::*, 0> kReferences{};
  static const PyMethodDef kMethods[13];
  static const PyGetSetDef kAttributes[4];

  static PyObject* make(PyTypeObject* type, PyObject*, PyObject*);
  static std::vector<PyType_Slot> slots();
  int traverse(visitproc visit, void* arg);
  void clear();
};
using Type = HeapType<Queue>;

/// The object that this thread took last: put back, it is an end mark for the thread's siblings.
thread_local const PyObject* last_taken = nullptr;

Members* members_of(PyObject* self) {
  Members* members = Type::contents(self).members.get();
  if (members == nullptr) PyErr_SetString(PyExc_RuntimeError, "Queue.__init__() was not called");
  return members;
}

PyObject* raise_from_queue_module(const char* name) {
  Owned type = imported("queue", name);
  if (!type) {  // ShutDown, before Python 3.13
    PyErr_Clear();
    type = imported("headrace.errors", name);
  }
  if (type) PyErr_SetNone(type.get());
  return nullptr;
}

PyObject* raise_status(QueueStatus status, bool putting) {
  if (status == QueueStatus::closed) return raise_from_queue_module("ShutDown");
  return raise_from_queue_module(putting ? "Full" : "Empty");
}

bool is_end_mark(const Members& members, const PyObject* item) {
  return item == Py_None || item == members.end_mark.load(std::memory_order_relaxed);
}

/// Name of the function that calls put or get, for threads that run no annotated operator. `run` methods and
/// lambdas say little, so those are named after what they belong to.
std::string calling_loop() {
  PyFrameObject* frame = PyEval_GetFrame();
  if (frame == nullptr) return "thread";
  const Owned code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const Owned name(PyObject_GetAttrString(code.get(), "co_name"));
  const char* text = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
  std::string result = text == nullptr ? "thread" : text;
  if (result == "<module>") result = "main";
  if (result == "run" || result == "__call__" || result.front() == '<') {
    const Owned qualified(PyObject_GetAttrString(code.get(), "co_qualname"));  // Python 3.11
    const char* whole = qualified ? PyUnicode_AsUTF8(qualified.get()) : nullptr;
    if (whole != nullptr) {
      std::string path = whole;
      for (std::size_t at = path.find(".<locals>"); at != std::string::npos; at = path.find(".<locals>")) {
        path.erase(at, 9);
      }
      const std::size_t last = path.rfind('.');
      if (last != std::string::npos) {
        path.resize(last);
        const std::size_t before = path.rfind('.');
        result = before == std::string::npos ? path : path.substr(before + 1);
      }
    }
  }
  PyErr_Clear();
  return result;
}

/// Timeout argument to deadline: None waits for ever. False with ValueError or TypeError set.
bool parse_timeout(PyObject* timeout, Deadline& deadline) {
  deadline = Deadline::max();
  if (timeout == nullptr || timeout == Py_None) return true;
  const double seconds = PyFloat_AsDouble(timeout);
  if (seconds == -1.0 && PyErr_Occurred() != nullptr) return false;
  if (!(seconds >= 0)) {
    PyErr_SetString(PyExc_ValueError, "'timeout' must be a non-negative number");
    return false;
  }
  if (seconds < 1e9) {
    deadline = EventCount::Clock::now() + std::chrono::duration_cast<EventCount::Clock::duration>(
                                              std::chrono::duration<double>(seconds));
  }
  return true;
}

/// Next check of this thread's wait for signals. One that arrives after Python's last check and before
/// the thread sleeps interrupts nothing; the main thread, which alone runs the handlers, therefore checks
/// twice a second.
Deadline next_look(Deadline deadline) {
  if (profile::current_tid() != profile::current_pid()) return deadline;
  return std::min(deadline, EventCount::Clock::now() + std::chrono::milliseconds(500));
}

/// Waits without the interpreter lock. False when a signal handler raised (KeyboardInterrupt).
bool wait_for_change(Members& members, bool putting, Deadline deadline, QueueStatus& status) {
  members.handle->waiting(putting ? metrics::WorkerState::blocked_out : metrics::WorkerState::blocked_in);
  bool go_on = true;
  do {
    const Deadline look = next_look(deadline);
    {
      const LockReleased released;
      status = putting ? members.native.wait_not_full(look) : members.native.wait_not_empty(look);
    }
    if (status == QueueStatus::timed_out && look != deadline) status = QueueStatus::interrupted;
    if (status == QueueStatus::interrupted) go_on = PyErr_CheckSignals() == 0;
  } while (go_on && status == QueueStatus::interrupted);
  members.handle->waited();
  return go_on;
}

/// Runs `attempt(waited_ns, transfer)` until it succeeds, as `block` and `timeout` allow.
template <class Attempt>
bool transfer(Members& members, bool putting, bool block, PyObject* timeout, bool counts, Attempt&& attempt) {
  std::string loop;
  if (members.handle->wants_loop_name()) loop = calling_loop();
  const CallContext about{counts, loop.empty() ? nullptr : loop.c_str()};
  // A bad timeout is refused even where there is nothing to wait for, as queue.Queue does.
  Deadline deadline = Deadline::max();
  const bool may_wait = block && !(putting && members.native.capacity() == 0);
  if (may_wait && !parse_timeout(timeout, deadline)) return false;
  QueueStatus status = attempt(std::int64_t{0}, about);
  if (status == QueueStatus::done) return true;
  const std::int64_t began = metrics::Clock::now_ns();
  while (block && status == QueueStatus::not_now) {
    QueueStatus waited;
    if (!wait_for_change(members, putting, deadline, waited)) return false;
    status = attempt(metrics::Clock::now_ns() - began, about);
    if (waited == QueueStatus::timed_out) break;
  }
  if (status == QueueStatus::done) return true;
  raise_status(status, putting);
  return false;
}

PyObject* put_item(Members& members, PyObject* item, bool block, PyObject* timeout) {
  PyObject* owned = Py_NewRef(item);
  const bool back = item == last_taken && members.handle->taken_by_this_thread();
  const bool counts = !is_end_mark(members, item) && !back;
  const bool put =
      transfer(members, true, block, timeout, counts, [&](std::int64_t waited, const CallContext& about) {
        // Counted before a consumer can take it and call task_done.
        members.unfinished.fetch_add(1);
        const QueueStatus status = members.native.try_put(owned, waited, about);
        if (status != QueueStatus::done) members.unfinished.fetch_sub(1);
        return status;
      });
  if (!put) {
    Py_DECREF(owned);
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* get_item(Members& members, bool block, PyObject* timeout) {
  std::optional<PyObject*> item;
  const bool got =
      transfer(members, false, block, timeout, true, [&](std::int64_t waited, const CallContext& about) {
        return members.native.try_get_judged(item, waited, [&](PyObject* taken) {
          return CallContext{!is_end_mark(members, taken), about.loop_name};
        });
      });
  if (!got) return nullptr;
  last_taken = *item;
  return *item;
}

bool parse_block(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, Py_ssize_t first, bool& block,
                 PyObject*& timeout, PyObject** item) {
  PyObject* values[3] = {nullptr, nullptr, nullptr};  // item, block, timeout
  const Py_ssize_t most = 3 - first;
  if (nargs > most) {
    PyErr_Format(PyExc_TypeError, "takes at most %zd arguments (%zd given)", most, nargs);
    return false;
  }
  for (Py_ssize_t i = 0; i < nargs; ++i) values[first + i] = args[i];
  const Py_ssize_t named = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    int index = -1;
    if (first == 0 && PyUnicode_CompareWithASCIIString(name, "item") == 0) index = 0;
    if (PyUnicode_CompareWithASCIIString(name, "block") == 0) index = 1;
    if (PyUnicode_CompareWithASCIIString(name, "timeout") == 0) index = 2;
    if (index < 0 || values[index] != nullptr) {
      PyErr_Format(PyExc_TypeError, "unexpected or repeated argument '%U'", name);
      return false;
    }
    values[index] = args[nargs + i];
  }
  if (first == 0 && values[0] == nullptr) {
    PyErr_SetString(PyExc_TypeError, "put() needs an item");
    return false;
  }
  if (item != nullptr) *item = values[0];
  const int truth = values[1] == nullptr ? 1 : PyObject_IsTrue(values[1]);
  if (truth < 0) return false;
  block = truth != 0;
  timeout = values[2];
  return true;
}

PyObject* queue_put(Members& members, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  bool block = true;
  PyObject* timeout = nullptr;
  PyObject* item = nullptr;
  if (!parse_block(args, nargs, kwnames, 0, block, timeout, &item)) return nullptr;
  return put_item(members, item, block, timeout);
}

PyObject* queue_get(Members& members, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  bool block = true;
  PyObject* timeout = nullptr;
  if (!parse_block(args, nargs, kwnames, 1, block, timeout, nullptr)) return nullptr;
  return get_item(members, block, timeout);
}

PyObject* queue_put_nowait(Members& members, PyObject* item) {
  return put_item(members, item, false, nullptr);
}
PyObject* queue_get_nowait(Members& members, PyObject*) { return get_item(members, false, nullptr); }

PyObject* queue_qsize(Members& members, PyObject*) { return PyLong_FromLongLong(members.native.size()); }

PyObject* queue_empty(Members& members, PyObject*) { return PyBool_FromLong(members.native.size() == 0); }

PyObject* queue_full(Members& members, PyObject*) {
  const std::int64_t capacity = members.native.capacity();
  return PyBool_FromLong(capacity > 0 && members.native.size() >= capacity);
}

PyObject* queue_task_done(Members& members, PyObject*) {
  std::int64_t before = members.unfinished.load();
  do {
    if (before <= 0) {
      PyErr_SetString(PyExc_ValueError, "task_done() called too many times");
      return nullptr;
    }
  } while (!members.unfinished.compare_exchange_weak(before, before - 1));
  if (before == 1) members.all_done.notify_all();
  Py_RETURN_NONE;
}

PyObject* queue_join(Members& members, PyObject*) {
  while (members.unfinished.load() > 0) {
    queues::Wake wake = queues::Wake::notified;
    {
      const LockReleased released;
      const EventCount::Ticket ticket = members.all_done.prepare();
      if (members.unfinished.load() == 0) {
        members.all_done.cancel(ticket);
      } else {
        wake = members.all_done.wait(ticket, next_look(Deadline::max()));
      }
    }
    if (wake != queues::Wake::notified && PyErr_CheckSignals() != 0) return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* queue_shutdown(Members& members, PyObject* args, PyObject* kwargs) {
  int immediate = 0;
  if (!parse(args, kwargs, "|p", {"immediate", nullptr}, &immediate)) return nullptr;
  const std::deque<PyObject*> dropped = members.native.close(immediate != 0);
  for (PyObject* item : dropped) Py_DECREF(item);
  if (!dropped.empty()) {
    members.unfinished.fetch_sub(static_cast<std::int64_t>(dropped.size()));
    if (members.unfinished.load() <= 0) members.all_done.notify_all();
  }
  Py_RETURN_NONE;
}

PyObject* queue_mark_end(Members& members, PyObject* mark) {
  PyObject* before = members.end_mark.exchange(Py_NewRef(mark));
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

PyObject* queue_reduce(PyObject* self, PyObject*) {
  PyErr_Format(PyExc_TypeError,
               "cannot pickle '%.100s' object: a headrace.Queue connects threads of one process; use "
               "multiprocessing.Queue between processes",
               Py_TYPE(self)->tp_name);
  return nullptr;
}

PyObject* queue_maxsize(Members& members, void*) { return PyLong_FromLongLong(members.native.capacity()); }

PyObject* queue_name(Members& members, void*) { return PyUnicode_FromString(members.handle->name().c_str()); }

PyObject* queue_unfinished(Members& members, void*) { return PyLong_FromLongLong(members.unfinished.load()); }

int queue_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  long long capacity = 0;
  const char* name = nullptr;
  if (!parse(args, kwargs, "|Lz", {"maxsize", "name", nullptr}, &capacity, &name)) return -1;
  if (Type::contents(self).members != nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "Queue.__init__() called twice");
    return -1;
  }
  if (capacity < 0) {
    const Owned type = imported("headrace.errors", "UsageError");
    if (type) PyErr_Format(type.get(), "a queue's maxsize is 0 (no limit) or more, not %lld", capacity);
    return -1;
  }
  const std::string given = name == nullptr || *name == '\0' ? "queue" : name;
  Type::contents(self).members.reset(new Members(given, capacity));
  return 0;
}

PyObject* Queue::make(PyTypeObject* type, PyObject*, PyObject*) { return Type::create(type); }

int Queue::traverse(visitproc visit, void* arg) {
  Py_VISIT(dict);
  if (members == nullptr) return 0;
  Py_VISIT(members->end_mark.load());
  int result = 0;
  members->native.for_each([&](PyObject* item) {
    if (result == 0) result = visit(item, arg);
  });
  return result;
}

void Queue::clear() {
  Py_CLEAR(dict);
  if (members == nullptr) return;
  Py_XDECREF(members->end_mark.exchange(nullptr));
  for (PyObject* item : members->native.close(true)) Py_DECREF(item);
}

PyObject* queue_repr(Members& members) {
  return PyUnicode_FromFormat("<headrace.Queue '%s': %lld of %lld>", members.handle->name().c_str(),
                              static_cast<long long>(members.native.size()),
                              static_cast<long long>(members.native.capacity()));
}

/// A function of the queue's members as a method or property of the queue.
template <auto Function>
struct MembersCall;
template <class... Args, PyObject* (*Function)(Members&, Args...)>
struct MembersCall<Function> {
  static PyObject* call(PyObject* self, Args... args) {
    Members* members = members_of(self);
    return members == nullptr ? nullptr : Function(*members, args...);
  }
};
template <auto Function>
PyCFunction of_members() {
  return method(MembersCall<Function>::call);
}

const PyMethodDef Queue::kMethods[] = {
    {"put", of_members<queue_put>(), METH_FASTCALL | METH_KEYWORDS,
     "put($self, item, block=True, timeout=None)\n--\n\nPut an item, waiting for room; raises queue.Full."},
    {"get", of_members<queue_get>(), METH_FASTCALL | METH_KEYWORDS,
     "get($self, block=True, timeout=None)\n--\n\nTake an item, waiting for one; raises queue.Empty."},
    {"put_nowait", of_members<queue_put_nowait>(), METH_O,
     "put_nowait($self, item, /)\n--\n\nput(item, block=False)."},
    {"get_nowait", of_members<queue_get_nowait>(), METH_NOARGS, "get_nowait($self)\n--\n\nget(block=False)."},
    {"qsize", of_members<queue_qsize>(), METH_NOARGS, "qsize($self)\n--\n\nItems in the queue now."},
    {"empty", of_members<queue_empty>(), METH_NOARGS, "empty($self)\n--\n\nTrue when nothing is in it."},
    {"full", of_members<queue_full>(), METH_NOARGS, "full($self)\n--\n\nTrue when there is no room."},
    {"task_done", of_members<queue_task_done>(), METH_NOARGS,
     "task_done($self)\n--\n\nAn item that was taken is dealt with (see join)."},
    {"join", of_members<queue_join>(), METH_NOARGS,
     "join($self)\n--\n\nWait until every item that was put is dealt with."},
    {"shutdown", of_members<queue_shutdown>(), METH_VARARGS | METH_KEYWORDS,
     "shutdown($self, immediate=False)\n--\n\nNo more puts; gets raise ShutDown once it is empty (at once: "
     "immediate)."},
    {"_mark_end", of_members<queue_mark_end>(), METH_O, nullptr},
    {"__reduce__", queue_reduce, METH_NOARGS, nullptr},
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, nullptr},
};

const PyGetSetDef Queue::kAttributes[] = {
    {"maxsize", MembersCall<queue_maxsize>::call, nullptr, "Capacity; 0: unbounded.", nullptr},
    {"name", MembersCall<queue_name>::call, nullptr, "Its name in reports.", nullptr},
    {"unfinished_tasks", MembersCall<queue_unfinished>::call, nullptr, "Items put and not yet task_done.",
     nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
};

std::vector<PyType_Slot> Queue::slots() {
  static const char* doc =
      "Queue(maxsize=0, name=None)\n--\n\n"
      "A bounded queue between threads with the methods of queue.Queue, recorded as a queue of the "
      "pipeline.\n\nBlocks without the interpreter lock; timeouts and KeyboardInterrupt work. "
      "maxsize 0: unbounded.\nAn end mark (None, or the sentinel of iter(q.get, sentinel)) is no item.";
  return {{Py_tp_doc, const_cast<char*>(doc)},
          {Py_tp_init, slot(queue_init)},
          {Py_tp_repr, slot(MembersCall<queue_repr>::call)}};
}

}  // namespace

bool add_queue(PyObject* module) { return Type::add(module); }

std::shared_ptr<profile::QueueHandle> queue_handle_of(PyObject* object) {
  if (Type::type == nullptr || !PyObject_TypeCheck(object, Type::type)) return nullptr;
  const auto& members = Type::contents(object).members;
  return members == nullptr ? nullptr : members->handle;
}

}  // namespace headrace::python
