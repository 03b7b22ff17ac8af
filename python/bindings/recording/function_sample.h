// Functions that take an operator's time: calls and returns of one thread, followed while a few batches are
// fetched.
//
//     FunctionSample sample;
//     if (sample.begin()) { fetch(); sample.end(); }   // the timed objects inside say whose calls they are
//
// One thread uses a sample at a time, with the interpreter lock. Never raises.
#pragma once

#include <Python.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "crossing.h"
#include "headrace/profile/probes.h"

namespace headrace::python {

class FunctionSample {
 public:
  using Operator = std::shared_ptr<profile::OperatorHandle>;

  /// Follows this thread from now on; false where somebody profiles it already, or another sample is taken.
  bool begin();
  /// Stops, and records for each operator which functions took its time so far.
  void end();

  std::int64_t elapsed_ns() const noexcept { return elapsed_ns_; }
  bool is_of_this_thread() const noexcept { return thread_ == PyThread_get_thread_ident(); }

  /// The one that follows a thread now, of which there is at most one; guarded by the interpreter lock.
  static FunctionSample* current;

  /// The calling thread's work from now on is of `op`, until `leave`.
  void enter(const Operator& op);
  void leave();

 private:
  /// A function's time in one operator.
  struct Own {
    std::string name;            ///< "" of the operator's call itself
    std::int64_t ns = 0;         ///< its own
    std::int64_t called_ns = 0;  ///< as one that the user's code called: with what it calls in libraries
    std::int64_t before_ns = 0;  ///< `ns` and `called_ns` when this fetch began
    std::int64_t called_before_ns = 0;
  };
  /// A function, and the user's function that it was called from.
  using Key = std::pair<const void*, const void*>;
  struct Frame {
    Own* own = nullptr;
    Own* called = nullptr;       ///< the library's function that the user's code called, or the user's own
    const void* user = nullptr;  ///< the user's function that is nearest
    const Own* user_function = nullptr;
    bool is_operator = false;
    bool is_users = false;
  };

  static int on_event(PyObject* self, PyFrameObject* frame, int what, PyObject* argument);
  void charge();
  void extend(double factor);
  void call(const void* function, std::string (*name)(PyObject*), PyObject* object);
  bool is_users(const void* function, PyObject* object);
  void returned();
  void record() const;

  std::map<profile::OperatorHandle*, std::map<Key, Own>> times_;
  std::map<const void*, bool> users_;  ///< whether a Python function is the user's
  std::vector<Operator> kept_;         ///< the operators of times_
  std::vector<Owned> codes_;           ///< and their Python functions: no other one gets their addresses
  std::vector<Operator> entered_;      ///< innermost last
  std::vector<Frame> frames_;
  std::int64_t last_ns_ = 0;
  std::int64_t begun_ns_ = 0;
  std::int64_t elapsed_ns_ = 0;
  std::int64_t events_ = 0;
  unsigned long thread_ = 0;
  bool follows_ = false;
};

/// Around a timed object's call of the user's code: whose time it is, where this thread's fetch is sampled.
class SampledCall {
 public:
  explicit SampledCall(const FunctionSample::Operator& op)
      : sample_(FunctionSample::current != nullptr && FunctionSample::current->is_of_this_thread()
                    ? FunctionSample::current
                    : nullptr) {
    if (sample_ != nullptr) sample_->enter(op);
  }
  ~SampledCall() {
    if (sample_ != nullptr) sample_->leave();
  }
  SampledCall(const SampledCall&) = delete;
  SampledCall& operator=(const SampledCall&) = delete;

 private:
  FunctionSample* sample_;
};

/// Result of `call`, a call of the operator's code.
template <class Call>
PyObject* sampled(const FunctionSample::Operator& op, Call&& call) {
  const SampledCall follows(op);
  return calling_python(call);
}

}  // namespace headrace::python
