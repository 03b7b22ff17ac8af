// Calls of operators, and which one ran inside which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/analysis/device/device_work.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// Operators, annotations and runtime calls of one trace. Python functions are none: they lie between. A call
/// that does nothing but make one call of the same name (an overload that picks another) and that call are
/// one, as PyTorch's profiler counts them.
class Calls {
 public:
  static constexpr std::int32_t kNone = -1;

  explicit Calls(const trace::Trace& trace);

  std::size_t size() const noexcept { return rows_.size(); }
  trace::Row row(std::size_t call) const noexcept { return rows_[call]; }
  /// It is a part of another call, which has its work.
  bool is_part(std::size_t call) const noexcept { return whole_[call] != static_cast<std::int32_t>(call); }
  /// The call that it ran inside; it stands before it.
  std::int32_t parent(std::size_t call) const noexcept { return parent_[call]; }
  /// Its time in which a call of its thread ran that began later and ended later.
  std::int64_t overlapped_ns(std::size_t call) const noexcept { return overlapped_ns_[call]; }
  /// The innermost call that a row of the host began inside, itself where it is one.
  std::int32_t around(trace::Row row) const noexcept;
  /// `around` for an event without a duration (an allocation), by its lane and time.
  std::int32_t at(std::uint32_t lane, std::int64_t ns) const noexcept;

 private:
  void merge_overloads();

  const trace::Trace* trace_;
  std::vector<trace::Row> rows_;             ///< by lane, then start, the enclosing one first
  std::vector<std::int32_t> parent_;         ///< by call
  std::vector<std::int32_t> whole_;          ///< by call: itself, or what it is a part of
  std::vector<std::int64_t> overlapped_ns_;  ///< by call
  std::vector<std::int32_t> of_row_;         ///< by row
  std::vector<std::size_t> first_of_lane_;
};

}  // namespace headrace::analysis::device
