// Marks in the queue of the device that torch computes on, as Python's `headrace.record.device_clock` puts them.
#include "headrace/profile/device_samples.h"

#include <Python.h>

#include "crossing.h"
#include "headrace/profile/process_identity.h"

namespace headrace::python {
namespace {

/// Raises the exception of a signal's handler again, in the main thread, to which handlers belong.
int raise_again(void* exception) {
  PyObject* raised = static_cast<PyObject*>(exception);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised)), raised);
  Py_DECREF(raised);
  return -1;
}

/// An error of torch costs a sample, nothing else. What a signal's handler raised here is the program's: it is
/// raised again at the main thread's next instruction.
void forget_error() {
  forget_failure();
  if (PyErr_Occurred() == nullptr) return;
  PyObject* type = nullptr;
  PyObject* raised = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &raised, &traceback);
  PyErr_NormalizeException(&type, &raised, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(raised, traceback);  // shows that a handler raised it
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  if (Py_AddPendingCall(&raise_again, raised) != 0) Py_XDECREF(raised);
}

class PythonSpan final : public profile::DeviceSpan {
 public:
  explicit PythonSpan(PyObject* span) noexcept : span_(span) {}
  ~PythonSpan() override {
    // A forked process has a copy of the span, and no device: its events are left alone.
    if (interpreter_is_ending() || pid_ != profile::current_pid()) return;
    const LockTaken taken;
    Py_DECREF(span_);
  }
  PythonSpan(const PythonSpan&) = delete;
  PythonSpan& operator=(const PythonSpan&) = delete;

  void end() noexcept override {
    const LockTaken taken;
    const Owned done(calling_python([&] { return PyObject_CallMethod(span_, "end", nullptr); }));
    failed_ = !done;
    forget_error();
  }
  std::int64_t ns() noexcept override {
    if (failed_) return kNever;
    const LockTaken taken;
    const Owned told(calling_python([&] { return PyObject_CallMethod(span_, "ns", nullptr); }));
    const long long ns = told ? PyLong_AsLongLong(told.get()) : kNever;
    if (PyErr_Occurred() == nullptr) return ns;
    forget_error();
    return kNever;
  }

 private:
  PyObject* span_;
  int pid_ = profile::current_pid();
  bool failed_ = false;
};

class PythonClock final : public profile::DeviceClock {
 public:
  std::unique_ptr<profile::DeviceSpan> begin() noexcept override {
    if (interpreter_is_ending()) return nullptr;
    const LockTaken taken;
    if (begin_ == nullptr && !find()) return nullptr;
    Owned span(calling_python([&] { return PyObject_CallNoArgs(begin_); }));
    forget_error();
    if (!span || span.get() == Py_None) return nullptr;
    return std::make_unique<PythonSpan>(span.release());
  }

 private:
  /// False while torch has not been imported. It is not imported for this.
  bool find() {
    const Owned name(PyUnicode_FromString("torch"));
    const Owned torch(name ? PyImport_GetModule(name.get()) : nullptr);
    if (torch) begin_ = imported("headrace.record.device_clock", "begin").release();
    forget_error();
    return begin_ != nullptr;
  }

  PyObject* begin_ = nullptr;  ///< guarded by the interpreter lock, kept for ever
};

}  // namespace

void install_device_clock() {
  static PythonClock clock;
  profile::DeviceClock::install(&clock);
}

}  // namespace headrace::python
