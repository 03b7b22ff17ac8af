// A put or get of a loader's own queue, and what it says about the batch that passes.
//
// QueueMethod stands in a subclass of the queue's class and hands the call to the QueueCall in the attributes
// of that very queue; no reference leads back to the queue, which so dies with its loader.
#include <Python.h>
#include <structmember.h>

#include <cstring>
#include <optional>
#include <utility>

#include "batch_contents.h"
#include "crossing.h"
#include "headrace/metrics/clock.h"
#include "headrace/profile/batch_tracker.h"
#include "headrace/profile/delivery_writer.h"
#include "headrace/profile/thread_context.h"
#include "heap_type.h"

namespace headrace::python {
namespace {

using metrics::Clock;

enum class Role : int {
  dispatch,    // training process: index_queue.put((number, index))
  receive,     // ... result_queue.get() -> (number, data)
  pinned_put,  // ... its pinning thread: data_queue.put((number, data))
  pinned_get,  // ... data_queue.get() -> (number, data)
  take,        // worker process: index_queue.get() -> (number, index)
  deliver,     // ... result_queue.put((number, data))
  send,        // ... its feeder thread: send_bytes(message)
};
constexpr const char* kRoles[] = {"dispatch", "receive", "pinned_put", "pinned_get",
                                  "take",     "deliver", "send"};

struct State {
  Role role = Role::dispatch;
  int worker = -1;
  std::shared_ptr<profile::BatchTracker> tracker;
  std::shared_ptr<profile::DeliveryWriter> writer;
  std::uint64_t counted = 0;          ///< batches whose tensors might have been counted
  metrics::BurstSampling sampling{};  ///< of receives whose CPU time is read
  std::int64_t last_ns = 0;           ///< what the last receive took
};

struct QueueCall {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;  ///< takes the queue first, but for `send`
  PyObject* weakrefs;
  State state;
  static constexpr auto kReferences = std::array{&QueueCall::function};
};

using Type = HeapType<QueueCall>;

/// The number of a batch in (number, data); below 0: something that is not a batch.
std::int64_t number_of(PyObject* message) {
  if (message == nullptr || PyTuple_Check(message) == 0 || PyTuple_GET_SIZE(message) < 2) return -1;
  PyObject* number = PyTuple_GET_ITEM(message, 0);
  if (PyLong_CheckExact(number) == 0) return -1;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  return overflow != 0 ? -1 : value;
}

bool named(PyObject* object, const char* name) {
  const char* full = Py_TYPE(object)->tp_name;
  const char* dot = std::strrchr(full, '.');
  return std::strcmp(dot == nullptr ? full : dot + 1, name) == 0;
}

PyObject* call(QueueCall* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  return calling_python([&] { return PyObject_Vectorcall(self->function, args, nargsf, kwnames); });
}

/// What is put or sent: the first argument after the queue itself.
PyObject* message_argument(const State& state, PyObject* const* args, std::size_t nargsf) {
  const Py_ssize_t at = state.role == Role::send ? 0 : 1;
  return PyVectorcall_NARGS(nargsf) > at ? args[at] : nullptr;
}

void block_in() {
  if (auto* context = profile::ThreadContext::recording())
    context->probe.block(metrics::WorkerState::blocked_in, Clock::now_ns());
}

void unblock() {
  if (auto* probe = profile::ThreadContext::local().open_probe()) probe->unblock(Clock::now_ns());
}

PyObject* receive(QueueCall* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  block_in();
  const std::int64_t asked = Clock::now_ns();
  const std::int64_t cpu_ns =
      self->state.sampling.take(asked, self->state.last_ns) ? Clock::thread_cpu_ns() : -1;
  PyObject* message = call(self, args, nargsf, kwnames);
  const std::int64_t now = Clock::now_ns();
  self->state.last_ns = now - asked;
  const std::int64_t number = number_of(message);
  if (number >= 0) {
    self->state.tracker->received(number, asked, now, cpu_ns < 0 ? -1 : Clock::thread_cpu_ns() - cpu_ns);
  }
  unblock();
  return message;
}

PyObject* take_pinned(QueueCall* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  block_in();
  PyObject* message = call(self, args, nargsf, kwnames);
  unblock();
  self->state.tracker->unqueued(number_of(message), Clock::now_ns());
  return message;
}

PyObject* take(QueueCall* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  profile::DeliveryWriter& writer = *self->state.writer;
  writer.waiting();
  PyObject* message = call(self, args, nargsf, kwnames);
  if (message == nullptr) return nullptr;  // nothing within the time-out: it goes on waiting
  const std::int64_t number = number_of(message);
  if (number >= 0) {
    writer.took(number);
  } else if (message == Py_None) {
    writer.finish();
  } else {
    writer.took_nothing();
  }
  return message;
}

void note_delivery(QueueCall* self, PyObject* message) {
  profile::DeliveryWriter& writer = *self->state.writer;
  const std::int64_t number = number_of(message);
  if (number < 0) {
    writer.made_nothing();
    return;
  }
  PyObject* data = PyTuple_GET_ITEM(message, 1);
  if (named(data, "_IterableDatasetStopIteration")) writer.exhausted();
  constexpr std::uint64_t kAtFirst = 4;
  constexpr std::uint64_t kThenOneIn = 64;
  const std::uint64_t nth = self->state.counted++;
  const bool counts = nth < kAtFirst || nth % kThenOneIn == 0;
  writer.made(number, counts ? contents_of(data).tensors : -1);
}

PyObject* send(QueueCall* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  PyObject* message = message_argument(self->state, args, nargsf);
  Py_buffer view{};
  std::int64_t bytes = 0;
  if (message != nullptr && PyObject_GetBuffer(message, &view, PyBUF_SIMPLE) == 0) {
    bytes = view.len;
    PyBuffer_Release(&view);
  } else {
    PyErr_Clear();
  }
  self->state.writer->sending(bytes);
  PyObject* result = call(self, args, nargsf, kwnames);
  self->state.writer->sent();
  return result;
}

PyObject* queue_vectorcall(PyObject* object, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  QueueCall* self = Type::cast(object);
  State& state = self->state;
  switch (state.role) {
    case Role::dispatch:
      state.tracker->dispatched(state.worker, number_of(message_argument(state, args, nargsf)),
                                Clock::now_ns());
      break;
    case Role::receive:
      return receive(self, args, nargsf, kwnames);
    case Role::pinned_put:
      state.tracker->pinned(number_of(message_argument(state, args, nargsf)), Clock::now_ns());
      break;
    case Role::pinned_get:
      return take_pinned(self, args, nargsf, kwnames);
    case Role::take:
      return take(self, args, nargsf, kwnames);
    case Role::deliver:
      if (PyObject* message = message_argument(state, args, nargsf)) note_delivery(self, message);
      break;
    case Role::send:
      return send(self, args, nargsf, kwnames);
  }
  return call(self, args, nargsf, kwnames);
}

std::optional<Role> role_of(const char* name) {
  for (std::size_t i = 0; i < std::size(kRoles); ++i) {
    if (std::strcmp(kRoles[i], name) == 0) return static_cast<Role>(i);
  }
  PyErr_Format(PyExc_ValueError, "no such role of a queue's call: %s", name);
  return std::nullopt;
}

/// role, the function, and the watch or writer that is told; worker: whose index queue it is.
PyObject* queue_new(PyTypeObject* type, PyObject* args, PyObject*) {
  const char* role = nullptr;
  PyObject* function = nullptr;
  PyObject* told = nullptr;
  int worker = -1;
  if (!PyArg_ParseTuple(args, "sOO|i", &role, &function, &told, &worker)) return nullptr;
  const std::optional<Role> found = role_of(role);
  if (!found) return nullptr;
  std::shared_ptr<profile::BatchTracker> tracker;
  std::shared_ptr<profile::DeliveryWriter> writer;
  if (*found < Role::take) {
    tracker = batch_tracker_of(told);
  } else {
    writer = delivery_writer_of(told);
  }
  if (tracker == nullptr && writer == nullptr) return nullptr;
  QueueCall* self = Type::make(type);
  if (self == nullptr) return nullptr;
  self->vectorcall = queue_vectorcall;
  self->state.role = *found;
  self->state.worker = worker;
  self->state.tracker = std::move(tracker);
  self->state.writer = std::move(writer);
  self->function = Py_NewRef(function);
  return Type::object(self);
}

PyMemberDef queue_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(QueueCall, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(QueueCall, weakrefs), READONLY, nullptr},
    {"__wrapped__", T_OBJECT_EX, offsetof(QueueCall, function), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot queue_slots[] = {
    HEAP_TYPE_SLOTS(QueueCall),
    {Py_tp_new, slot(queue_new)},
    {Py_tp_call, slot(PyVectorcall_Call)},
    {Py_tp_members, queue_members},
    {0, nullptr},
};

PyType_Spec queue_spec = {
    "headrace._core.QueueCall",
    sizeof(QueueCall),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    queue_slots,
};

// --- the method in the queue's class ---

struct QueueMethod {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* original;
  PyObject* attribute;  ///< where a queue keeps its QueueCall
  PyObject* weakrefs;
  struct {
  } state;
  static constexpr auto kReferences = std::array{&QueueMethod::original, &QueueMethod::attribute};
};

using Method = HeapType<QueueMethod>;

PyObject* method_vectorcall(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  QueueMethod* method = Method::cast(self);
  const Owned call(PyVectorcall_NARGS(nargsf) > 0 ? PyObject_GetAttr(args[0], method->attribute) : nullptr);
  if (!call) PyErr_Clear();
  return calling_python(
      [&] { return PyObject_Vectorcall(call ? call.get() : method->original, args, nargsf, kwnames); });
}

PyObject* method_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* original = nullptr;
  PyObject* attribute = nullptr;
  if (!PyArg_ParseTuple(args, "OU", &original, &attribute)) return nullptr;
  QueueMethod* self = Method::make(type);
  if (self == nullptr) return nullptr;
  self->vectorcall = method_vectorcall;
  self->original = Py_NewRef(original);
  self->attribute = Py_NewRef(attribute);
  return Method::object(self);
}

PyObject* method_descr_get(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

PyMemberDef method_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(QueueMethod, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(QueueMethod, weakrefs), READONLY, nullptr},
    {"__wrapped__", T_OBJECT_EX, offsetof(QueueMethod, original), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot method_slots[] = {
    HEAP_TYPE_SLOTS(QueueMethod),          {Py_tp_new, slot(method_new)},
    {Py_tp_call, slot(PyVectorcall_Call)}, {Py_tp_descr_get, slot(method_descr_get)},
    {Py_tp_members, method_members},       {0, nullptr},
};

PyType_Spec method_spec = {
    "headrace._core.QueueMethod",
    sizeof(QueueMethod),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    method_slots,
};

}  // namespace

bool add_queue_call(PyObject* module) {
  return add_type(module, queue_spec, "QueueCall") && add_type(module, method_spec, "QueueMethod");
}

}  // namespace headrace::python
