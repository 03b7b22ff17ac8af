// A Python object as an item of a pipeline, a body's exception, and the interpreter lock around a worker's
// work.
#pragma once

#include <Python.h>

#include <exception>
#include <memory>
#include <utility>

#include "crossing.h"
#include "headrace/pipeline/wait_hooks.h"

namespace headrace::python {

/// Owns one reference. May be destroyed by any thread, with or without the interpreter lock; everything else
/// needs the lock.
class Item {
 public:
  /// Takes over a new reference.
  explicit Item(PyObject* object) noexcept : object_(object) {}
  Item(Item&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Item& operator=(Item&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Item(const Item&) = delete;
  Item& operator=(const Item&) = delete;
  ~Item() {
    if (object_ != nullptr) drop();
  }

  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }

 private:
  void drop() noexcept {
    const bool ending = interpreter_is_ending();
    // Asked second: after the interpreter's end it says that every thread has the lock.
    if (!ending && PyGILState_Check() == 0) {
      const LockTaken taken;
      Py_DECREF(object_);
    } else if (!ending) {
      parked_when_unwound<Throws::nothing>([this] { Py_DECREF(object_); });
    }
  }

  PyObject* object_;
};

/// A body's exception. Unlike pybind11's it may be copied and destroyed without the lock, and by
/// threads that outlive the interpreter.
class BodyFailure : public std::exception {
 public:
  /// Takes the error that is set over; with the lock held.
  BodyFailure()
      : value_(std::make_shared<Item>(calling_python([] { return Py_XNewRef(KeptError().exception()); }))) {}
  /// Its message is Python's to tell (`raise_operator_error`): asking for it runs the exception's own code.
  const char* what() const noexcept override { return "a Python exception"; }
  /// The exception object, which has its traceback; a borrowed reference.
  PyObject* value() const noexcept { return value_->get(); }

 private:
  std::shared_ptr<Item> value_;
};

/// Runs a body: `call` gives a new reference, or null with an error set, which is thrown as a BodyFailure.
template <class Call>
Item made_by(Call&& call) {
  PyObject* made = calling_python(std::forward<Call>(call));
  if (made == nullptr) throw BodyFailure();
  return Item(made);
}

/// A worker with a Python body holds the interpreter lock except while it waits at a queue.
class InterpreterLock final : public pipeline::WaitHooks {
 public:
  void enter() noexcept override { state_ = take_lock(); }
  void leave() noexcept override { give_lock_back(state_); }
  void before_wait() noexcept override { saved_ = PyEval_SaveThread(); }
  void after_wait() noexcept override { take_lock_again(saved_); }

 private:
  PyGILState_STATE state_{};
  PyThreadState* saved_ = nullptr;
};

}  // namespace headrace::python
