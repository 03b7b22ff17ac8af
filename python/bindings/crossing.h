// Shared code of this module's files: small pieces around Python objects, and what each file adds.
#pragma once

#include <Python.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "interpreter_lock.h"

namespace headrace::profile {
class BatchTracker;
class DeliveryWriter;
class IteratorWatch;
class LoaderHandle;
class OperatorHandle;
class QueueHandle;
}  // namespace headrace::profile

namespace headrace::python {

/// A new reference, released at the end of the scope.
class Owned {
 public:
  explicit Owned(PyObject* object = nullptr) noexcept : object_(object) {}
  ~Owned() { Py_XDECREF(object_); }
  /// A further reference to an object that may be null.
  static Owned ref(PyObject* object) noexcept { return Owned(Py_XNewRef(object)); }
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_;
};

/// The exception that is set, if any, kept while other Python code runs: no error is set from here on.
class KeptError {
 public:
  KeptError() noexcept { PyErr_Fetch(&type_, &value_, &trace_); }
  ~KeptError() {
    Py_XDECREF(type_);
    Py_XDECREF(value_);
    Py_XDECREF(trace_);
  }
  KeptError(const KeptError&) = delete;
  KeptError& operator=(const KeptError&) = delete;
  /// The exception as an object, with its traceback; null if none was set.
  PyObject* exception() noexcept {
    PyErr_NormalizeException(&type_, &value_, &trace_);
    if (value_ != nullptr && trace_ != nullptr) PyException_SetTraceback(value_, trace_);
    return value_;
  }
  /// Sets it again, in place of any other.
  void restore() noexcept {
    PyErr_Restore(std::exchange(type_, nullptr), std::exchange(value_, nullptr),
                  std::exchange(trace_, nullptr));
  }

 private:
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* trace_ = nullptr;
};

/// After a call of ours that the user's program did not make: its failure changes nothing there. An exception
/// that a signal's handler raised meanwhile is the program's and stays set, as an interrupt and an exit do.
void forget_failure();

/// After `next` gave `item`: there is none because of an exception, not because the iterator is at its end.
inline bool next_failed(PyObject* item) {
  return item == nullptr && PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_StopIteration) == 0;
}

/// The bytes of an object, contiguous, kept while this lives. No bytes: an exception is set.
class BufferView {
 public:
  explicit BufferView(PyObject* object) noexcept
      : held_(calling_python([&] { return PyObject_GetBuffer(object, &view_, PyBUF_SIMPLE) == 0; })) {}
  ~BufferView() {
    if (held_) PyBuffer_Release(&view_);
  }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;

  explicit operator bool() const noexcept { return held_; }
  const void* data() const noexcept { return view_.buf; }
  Py_ssize_t size() const noexcept { return held_ ? view_.len : 0; }

 private:
  Py_buffer view_{};
  bool held_;
};

/// The value of a whole number; -1 for other objects, and for one that is too large.
inline std::int64_t whole_number(PyObject* object) {
  if (PyLong_CheckExact(object) == 0) return -1;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow != 0 ? -1 : value;
}

/// The name of a type without its module.
inline const char* short_name(PyTypeObject* type) {
  const char* dot = std::strrchr(type->tp_name, '.');
  return dot == nullptr ? type->tp_name : dot + 1;
}

/// An attribute of a module of Python; null with an exception set.
inline Owned imported(const char* module_name, const char* attribute) {
  return calling_python([&] {
    const Owned module(PyImport_ImportModule(module_name));
    return Owned(module ? PyObject_GetAttrString(module.get(), attribute) : nullptr);
  });
}

/// `__reduce__` of what stands for another object while it is recorded: sent to another process, that one
/// goes alone.
inline PyObject* reduced_to(PyObject* object) {
  const Owned itself = imported("headrace.record.operator", "itself");
  return itself ? Py_BuildValue("O(O)", itself.get(), object) : nullptr;
}

/// Adds whatever records.
void add_recording(PyObject* module);

// Each adds its type to the module.
bool add_timed_calls(PyObject* module);
bool add_queue(PyObject* module);
bool add_hooked_call(PyObject* module);
bool add_thread_queue_hooks(PyObject* module);
bool add_timed_fetch(PyObject* module);
bool add_queue_call(PyObject* module);
bool add_timed_next(PyObject* module);
/// Classes for adapters of frameworks' loaders.
void add_loader_bindings(PyObject* module);
/// The base of maps whose bodies run in processes.
void add_process_channel(PyObject* module);
/// The base of `Pipeline`.
void add_pipeline(PyObject* module);
/// Devices and the arrays that were copied to them.
void add_transport(PyObject* module);
/// The base of `annotate`, of `trace_steps` and `step`, and requests to remote services.
void add_marks(PyObject* module);
/// Steps are timed on the device as well, from now on.
void install_device_clock();
/// The base of `Table`: columns of C++ memory.
void add_columns(PyObject* module);
/// The base of `Trace`.
void add_device_trace(PyObject* module);
/// The analyses of device traces and memory snapshots; the base of `MemorySnapshot`.
void add_device_tables(PyObject* module);
/// Profiles of Ascend NPUs: folders and tables.
void add_ascend(PyObject* module);
/// Simulation of a job from the operations of its ranks.
void add_job(PyObject* module);
/// The ranks of a job beside each other.
void add_cluster(PyObject* module);
/// Totals of running loops, exposed wait, stragglers.
void add_live(PyObject* module);
/// The base of `Report`.
void add_parsed_report(PyObject* module);
/// The base of `watch`.
void add_watched_batches(PyObject* module);
/// Stacks of threads, local variables of frames, and exceptions of signals' handlers.
void add_frames(PyObject* module);
/// A run and device traces as one timeline.
void add_timeline(PyObject* module);

/// The handle inside an `Operator` object (defined with pybind11); null with TypeError set for anything else.
std::shared_ptr<profile::OperatorHandle> operator_handle_of(PyObject* object);
std::shared_ptr<profile::LoaderHandle> loader_handle_of(PyObject* object);
/// The handle inside a `QueueHandle` object, likewise.
std::shared_ptr<profile::QueueHandle> thread_queue_handle_of(PyObject* object);

/// The inside of a DeliveryWriter or IteratorWatch; null with an exception set for anything else.
std::shared_ptr<profile::DeliveryWriter> delivery_writer_of(PyObject* object);
std::shared_ptr<profile::BatchTracker> batch_tracker_of(PyObject* watch);
profile::IteratorWatch* iterator_watch_of(PyObject* object);

/// The recording side of a native Queue; null if `object` is none.
std::shared_ptr<profile::QueueHandle> queue_handle_of(PyObject* object);

}  // namespace headrace::python
