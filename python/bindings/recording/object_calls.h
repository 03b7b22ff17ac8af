// Calls of single objects, timed without another object in their place and without a change that Python code
// can see.
//
//     ObjectCalls calls;
//     if (ObjectCalls::possible(transform)) calls.add(transform, handle);
//     { const ObjectCalls::Scope while_fetching(calls); fetch(); }
//
// The C slot for calls of the object's class is replaced by one that looks the object up, in the calls of the
// scope that this thread is in. Class and object stay as they are for Python: attributes, identity, types,
// pickles.
#pragma once

#include <Python.h>

#include <memory>
#include <unordered_map>

#include "crossing.h"
#include "headrace/profile/probes.h"

namespace headrace::python {

class ObjectCalls {
 public:
  using Operator = std::shared_ptr<profile::OperatorHandle>;

  /// Objects of classes that were defined in Python, to which weak references can be made: a function, a builtin or
  /// a partial has no class of its own.
  static bool possible(PyObject* object) noexcept;
  /// Times calls of `object`, for which `possible` is true, as long as it lives. False with an exception set.
  bool add(PyObject* object, Operator handle);

  /// While it lives, this thread's calls are timed. Used with the interpreter lock, by one thread.
  class Scope {
   public:
    explicit Scope(const ObjectCalls& calls) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const ObjectCalls* before_;
  };

 private:
  static PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs);

  struct Recorded {
    Owned object;  ///< weak
    Operator handle;
  };
  std::unordered_map<PyObject*, Recorded> recorded_;  ///< by address, which another object may have later
};

}  // namespace headrace::python
