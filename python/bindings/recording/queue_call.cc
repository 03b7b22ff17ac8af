// A put or get of a loader's own queue, and what it says about the batch that passes.
//
// QueueMethod stands in a subclass of the queue's class and hands the call to the QueueCall in the attributes
// of that very queue; no reference leads back to the queue, which so dies with its loader.
#include <Python.h>

#include <cstring>
#include <optional>
#include <utility>

#include "crossing.h"
#include "headrace/metrics/clock.h"
#include "headrace/profile/batch_tracker.h"
#include "headrace/profile/delivery_writer.h"
#include "headrace/profile/thread_context.h"
#include "recording/batch_contents.h"
#include "recording/heap_type.h"

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

struct QueueCall {
  Owned function;  ///< takes the queue first, but for `send`
  Role role = Role::dispatch;
  int worker = -1;
  std::shared_ptr<profile::BatchTracker> tracker{};
  std::shared_ptr<profile::DeliveryWriter> writer{};
  std::uint64_t counted = 0;          ///< batches whose tensors might have been counted
  metrics::BurstSampling sampling{};  ///< of receives whose CPU time is read
  std::int64_t last_ns = 0;           ///< what the last receive took

  static constexpr const char* kName = "headrace._core.QueueCall";
  static constexpr auto kReferences = std::array{&QueueCall::function};
  static constexpr auto kWrapped = &QueueCall::function;

  static PyObject* make(PyTypeObject* type, PyObject* args, PyObject*);
  PyObject* call(const Arguments& arguments);
  PyObject* receive(const Arguments& arguments);
  PyObject* take_pinned(const Arguments& arguments);
  PyObject* take(const Arguments& arguments);
  PyObject* send(const Arguments& arguments);
  void note_delivery(PyObject* message);
  /// Message put or sent: the first argument after the queue itself.
  PyObject* message_of(const Arguments& arguments) const { return arguments.at(role == Role::send ? 0 : 1); }
};

/// The number of a batch in (number, data); below 0: something that is not a batch.
std::int64_t number_of(PyObject* message) {
  if (message == nullptr || PyTuple_Check(message) == 0 || PyTuple_GET_SIZE(message) < 2) return -1;
  return whole_number(PyTuple_GET_ITEM(message, 0));
}

void block_in() {
  if (auto* context = profile::ThreadContext::recording())
    context->probe.block(metrics::WorkerState::blocked_in, Clock::now_ns());
}

void unblock() {
  if (auto* probe = profile::ThreadContext::local().open_probe()) probe->unblock(Clock::now_ns());
}

PyObject* QueueCall::receive(const Arguments& arguments) {
  block_in();
  const std::int64_t asked = Clock::now_ns();
  const std::int64_t cpu_ns = sampling.take(asked, last_ns) ? Clock::thread_cpu_ns() : -1;
  PyObject* message = arguments.pass_to(function.get());
  const std::int64_t now = Clock::now_ns();
  last_ns = now - asked;
  const std::int64_t number = number_of(message);
  if (number >= 0) tracker->received(number, asked, now, cpu_ns < 0 ? -1 : Clock::thread_cpu_ns() - cpu_ns);
  unblock();
  return message;
}

PyObject* QueueCall::take_pinned(const Arguments& arguments) {
  block_in();
  PyObject* message = arguments.pass_to(function.get());
  unblock();
  tracker->unqueued(number_of(message), Clock::now_ns());
  return message;
}

PyObject* QueueCall::take(const Arguments& arguments) {
  writer->waiting();
  PyObject* message = arguments.pass_to(function.get());
  if (message == nullptr) return nullptr;  // nothing within the time-out: it goes on waiting
  const std::int64_t number = number_of(message);
  if (number >= 0) {
    writer->took(number);
  } else if (message == Py_None) {
    writer->finish();
  } else {
    writer->took_nothing();
  }
  return message;
}

void QueueCall::note_delivery(PyObject* message) {
  const std::int64_t number = number_of(message);
  if (number < 0) {
    writer->made_nothing();
    return;
  }
  PyObject* data = PyTuple_GET_ITEM(message, 1);
  if (std::strcmp(short_name(Py_TYPE(data)), "_IterableDatasetStopIteration") == 0) writer->exhausted();
  constexpr std::uint64_t kAtFirst = 4;
  constexpr std::uint64_t kThenOneIn = 64;
  const std::uint64_t nth = counted++;
  const bool counts = nth < kAtFirst || nth % kThenOneIn == 0;
  writer->made(number, counts ? contents_of(data).tensors : -1);
}

PyObject* QueueCall::send(const Arguments& arguments) {
  PyObject* message = message_of(arguments);
  writer->sending(message != nullptr ? BufferView(message).size() : 0);
  PyErr_Clear();  // something without a buffer
  PyObject* result = arguments.pass_to(function.get());
  writer->sent();
  return result;
}

PyObject* QueueCall::call(const Arguments& arguments) {
  switch (role) {
    case Role::dispatch:
      tracker->dispatched(worker, number_of(message_of(arguments)), Clock::now_ns());
      break;
    case Role::receive:
      return receive(arguments);
    case Role::pinned_put:
      tracker->pinned(number_of(message_of(arguments)), Clock::now_ns());
      break;
    case Role::pinned_get:
      return take_pinned(arguments);
    case Role::take:
      return take(arguments);
    case Role::deliver:
      if (PyObject* message = message_of(arguments)) note_delivery(message);
      break;
    case Role::send:
      return send(arguments);
  }
  return arguments.pass_to(function.get());
}

std::optional<Role> role_of(const char* name) {
  for (std::size_t i = 0; i < std::size(kRoles); ++i) {
    if (std::strcmp(kRoles[i], name) == 0) return static_cast<Role>(i);
  }
  PyErr_Format(PyExc_ValueError, "no such role of a queue's call: %s", name);
  return std::nullopt;
}

/// role, the function, and the watch or writer that is told; worker: whose index queue it is.
PyObject* QueueCall::make(PyTypeObject* type, PyObject* args, PyObject*) {
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
  return HeapType<QueueCall>::create(type, Owned::ref(function), *found, worker, std::move(tracker),
                                     std::move(writer));
}

/// The method in the queue's class.
struct QueueMethod {
  Owned original;
  Owned attribute;  ///< where a queue keeps its QueueCall

  static constexpr const char* kName = "headrace._core.QueueMethod";
  static constexpr auto kReferences = std::array{&QueueMethod::original, &QueueMethod::attribute};
  static constexpr auto kWrapped = &QueueMethod::original;
  static constexpr bool kIsMethod = true;

  static PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject* original = nullptr;
    PyObject* attribute = nullptr;
    if (!PyArg_ParseTuple(args, "OU", &original, &attribute)) return nullptr;
    return HeapType<QueueMethod>::create(type, Owned::ref(original), Owned::ref(attribute));
  }
  PyObject* call(const Arguments& arguments) {
    PyObject* queue = arguments.at(0);
    const Owned own(queue != nullptr ? PyObject_GetAttr(queue, attribute.get()) : nullptr);
    if (!own) PyErr_Clear();
    return arguments.pass_to(own ? own.get() : original.get());
  }
};

}  // namespace

bool add_queue_call(PyObject* module) {
  return HeapType<QueueCall>::add(module) && HeapType<QueueMethod>::add(module);
}

}  // namespace headrace::python
