// A Python object as an item of a pipeline, and the interpreter lock around a worker's work.
#pragma once

#include <Python.h>

#include <utility>

#include "headrace/pipeline/environment.h"

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
    if (object_ == nullptr) return;
    if (PyGILState_Check() != 0) {
      Py_DECREF(object_);
      return;
    }
    if (_Py_IsFinalizing() != 0) return;  // nobody can take the lock any more
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(object_);
    PyGILState_Release(state);
  }

  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }

 private:
  PyObject* object_;
};

/// A worker with a Python body holds the interpreter lock except while it waits at a queue.
class InterpreterLock final : public pipeline::Environment {
 public:
  void enter() noexcept override { state_ = PyGILState_Ensure(); }
  void leave() noexcept override { PyGILState_Release(state_); }
  void before_wait() noexcept override { saved_ = PyEval_SaveThread(); }
  void after_wait() noexcept override { PyEval_RestoreThread(saved_); }

 private:
  PyGILState_STATE state_{};
  PyThreadState* saved_ = nullptr;
};

/// While it lives the calling thread, which holds the interpreter lock, does not.
class LockReleased {
 public:
  LockReleased() noexcept : saved_(PyEval_SaveThread()) {}
  ~LockReleased() { PyEval_RestoreThread(saved_); }
  LockReleased(const LockReleased&) = delete;
  LockReleased& operator=(const LockReleased&) = delete;

 private:
  PyThreadState* saved_;
};

}  // namespace headrace::python
