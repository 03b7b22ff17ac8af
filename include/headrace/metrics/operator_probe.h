// Times the calls of one operator on one thread.
#pragma once

#include <cstdint>

#include "headrace/metrics/clock.h"
#include "headrace/metrics/operator_cell.h"
#include "headrace/metrics/worker_probe.h"

namespace headrace::metrics {

/// Start and end of an operator's body, for C++ code that runs it.
///
///     OperatorProbe decode(&context->probe, context->cell(id));   // once per thread, see
///     profile/thread_context.h { const OperatorProbe::Call call(decode); decode_jpeg(item); }
///
/// profile::OperatorHandle (profile/probes.h) does this for every thread by itself.
///
/// An unbound probe (recording is off, or the segment is full) costs one branch. Not thread-safe: one per
/// thread.
class OperatorProbe {
 public:
  OperatorProbe() = default;
  OperatorProbe(WorkerProbe* worker, OperatorCell* cell) noexcept : worker_(worker), cell_(cell) {}

  bool bound() const noexcept { return cell_ != nullptr; }

  void begin(std::int64_t now) noexcept {
    if (cell_ != nullptr) worker_->enter(*cell_, now);
  }
  void end(std::int64_t now, bool failed = false) noexcept {
    if (cell_ != nullptr) worker_->leave(now, failed);
  }

  /// One call of the body; a body left by an exception counts as a failure if so reported.
  class Call {
   public:
    explicit Call(OperatorProbe& probe) noexcept : probe_(probe) {
      if (probe_.bound()) probe_.begin(Clock::now_ns());
    }
    ~Call() {
      if (probe_.bound()) probe_.end(Clock::now_ns(), failed_);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    void fail() noexcept { failed_ = true; }

   private:
    OperatorProbe& probe_;
    bool failed_ = false;
  };

 private:
  WorkerProbe* worker_ = nullptr;
  OperatorCell* cell_ = nullptr;
};

}  // namespace headrace::metrics
