// Which part of a trace is looked at.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// The whole trace, unless something is set. Work on the device counts where its launch lies, whenever the
/// device got round to it; without a known launch, where it began itself.
struct Scope {
  /// Only what began in the steps of these numbers (`ProfilerStep#N`); empty: in any and in none.
  std::vector<std::int64_t> steps;
  /// Only what began in [begin_ns, end_ns), on the clock of the file.
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::max();
  /// Keeps the last step also where it is cut off.
  bool keep_cut_off_step = false;

  static Scope everything() {
    Scope scope;
    scope.keep_cut_off_step = true;
    return scope;
  }
};

/// True when the last of several steps is not all there: the file ends too early, or the profiler stopped in
/// the midst of it, which shows in that it started less than 80 % of the device work of the step before it.
bool last_step_is_cut_off(const trace::Trace& trace);

/// The step that a row counts for, index into `trace.steps.all()`, `Steps::kNone` if there is none: that
/// of its launch, and for what the device did without a known launch (ranges too) the one in which it began.
std::int32_t step_of(const trace::Trace& trace, trace::Row row) noexcept;

/// Decides whether a row is within a scope. Refers to the trace. Thread-safe once it is made.
class Selection {
 public:
  Selection(const trace::Trace& trace, const Scope& scope);

  bool has(trace::Row row) const noexcept {
    const trace::Row launch = trace_->correlation.launch_of(row);
    const trace::Row began_by = launch == trace::kNoRow ? row : launch;
    const std::int64_t at_ns = trace_->columns().start_ns[began_by];
    if (at_ns < begin_ns_ || at_ns >= end_ns_) return false;
    return any_step_ || is_in_a_step(row);
  }

  /// What a reader of the answer has to know, a sentence each.
  const std::vector<std::string>& notes() const noexcept { return notes_; }

 private:
  bool is_in_a_step(trace::Row row) const noexcept;

  const trace::Trace* trace_;
  std::int64_t begin_ns_;
  std::int64_t end_ns_;
  bool any_step_;
  /// One entry per step of the trace.
  std::vector<bool> wanted_;
  std::vector<std::string> notes_;
};

}  // namespace headrace::analysis::device
