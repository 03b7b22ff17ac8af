// What a thread of a pipeline needs around its work besides the work: an interpreter's lock, for one.
#pragma once

namespace headrace::pipeline {

/// Entered by a worker for one pass, left at its end. `before_wait` and `after_wait` stand around every call
/// that may sleep at a queue; both sides of one wait are called by the same thread. None of them may throw.
///
/// A Python body's worker holds the interpreter lock between the two, so that it is passed on only when the
/// worker has nothing to do, not once per item.
class Environment {
 public:
  virtual ~Environment() = default;
  virtual void enter() noexcept {}
  virtual void leave() noexcept {}
  virtual void before_wait() noexcept {}
  virtual void after_wait() noexcept {}
};

}  // namespace headrace::pipeline
