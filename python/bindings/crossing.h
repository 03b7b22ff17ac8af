// Small pieces that the hand-written types share. Hand-written because a pybind11 class costs 300 ns a call,
// a heap type with its own vectorcall 25.
#pragma once

#include <Python.h>

#include <memory>
#include <utility>

#include "headrace/profile/probes.h"
#include "interpreter_lock.h"

namespace headrace::profile {
class BatchTracker;
class DeliveryWriter;
class IteratorWatch;
class Relay;
}  // namespace headrace::profile

namespace headrace::python {

/// A new reference, released at the end of the scope.
class Owned {
 public:
  explicit Owned(PyObject* object = nullptr) noexcept : object_(object) {}
  ~Owned() { Py_XDECREF(object_); }
  Owned(Owned&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_;
};

/// Makes a heap type and adds it to the module; returns false with an exception set.
bool add_type(PyObject* module, PyType_Spec& spec, const char* name, PyTypeObject** type = nullptr);

// Each adds its type to the module.
bool add_timed_callable(PyObject* module);
bool add_timed_iterator(PyObject* module);
bool add_operator_iterator(PyObject* module);
bool add_queue(PyObject* module);
bool add_hooked_call(PyObject* module);
bool add_thread_queue_hooks(PyObject* module);
bool add_timed_dataset(PyObject* module);
bool add_timed_fetch(PyObject* module);
bool add_queue_call(PyObject* module);
bool add_timed_next(PyObject* module);
/// Classes for adapters of frameworks' loaders.
void add_loader_bindings(PyObject* module);
/// What maps whose bodies run in processes stand on.
void add_process_channel(PyObject* module);
/// What `Pipeline` stands on.
void add_pipeline(PyObject* module);
/// Devices and the arrays that were copied to them.
void add_transport(PyObject* module);
/// What `annotate` stands on.
void add_annotation(PyObject* module);
/// Steps are timed on the device as well, from now on.
void install_device_clock();
/// What `trace_steps` and `step` stand on.
void add_steps(PyObject* module);
/// What `Table` stands on: columns of C++ memory.
void add_columns(PyObject* module);
/// What `Trace` stands on.
void add_device_trace(PyObject* module);
/// The analyses of device traces.
void add_device_tables(PyObject* module);
/// Profiles of Ascend NPUs: folders and tables.
void add_ascend(PyObject* module);
/// Simulation of a job from the operations of its ranks.
void add_job(PyObject* module);
/// The ranks of a job beside each other.
void add_cluster(PyObject* module);
void add_tuning(PyObject* module);
void add_critical_path(PyObject* module);
/// What `Report` stands on.
void add_parsed_report(PyObject* module);
/// Folders of other profilers, as profiles.
void add_loader_files(PyObject* module);
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
/// A batch was taken from `iterator` on a thread that the program started: its next put is looked for.
void look_for_relay(std::shared_ptr<profile::Relay> relay, PyObject* iterator, PyObject* batch);

/// The recording side of a native Queue; null if `object` is none.
std::shared_ptr<profile::QueueHandle> queue_handle_of(PyObject* object);

}  // namespace headrace::python
