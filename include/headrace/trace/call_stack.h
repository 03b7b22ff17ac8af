// Which event of a thread runs inside which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/trace/columns.h"
#include "headrace/trace/correlation.h"
#include "headrace/trace/event_kind.h"
#include "headrace/trace/handovers.h"

namespace headrace::trace {

/// Callers of the complete events on the host's lanes, from their times alone: the innermost event of the
/// same lane that encloses an event called it. Of two with the same times, the one that stands first in the
/// file is outside; an event without a duration is inside what encloses its moment.
///
/// Events of one thread cannot overlap half. Where they do in the file, the earlier one counts as ended when
/// the later one begins, and it is counted in `overlapping`.
///
/// What another thread handed over was called by the event that handed it over, so a chain of callers may
/// continue on another lane. It always leads back in time.
class CallStack {
 public:
  CallStack() = default;
  CallStack(const Columns& columns, const std::vector<EventKind>& kinds,
            std::span<const Handover> handovers = {});

  /// kNoRow for what nothing encloses, and for rows that are not calls of the host.
  Row parent_of(Row row) const noexcept { return parent_[row]; }
  /// How many events enclose each row, made for this call.
  std::vector<std::uint32_t> depths() const;
  std::size_t overlapping() const noexcept { return overlapping_; }

  /// The event that first asked for what `row` does: the origin of the handovers above it, else `row`.
  Row origin_of(Row row) const noexcept;
  /// The nearest caller on another lane, kNoRow if nothing above `row` was handed over.
  Row handed_over_by(Row row) const noexcept;

 private:
  void hand_over(const Columns& columns, const std::vector<EventKind>& kinds,
                 std::span<const Handover> handovers);

  Values<Row> parent_;
  /// Rows whose parent is on another lane; empty if nothing is.
  std::vector<bool> is_handed_over_;
  std::size_t overlapping_ = 0;
};

}  // namespace headrace::trace
