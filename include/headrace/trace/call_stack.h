// Links between events: the call that launched a piece of work, the event around another on its thread, and
// work that one thread gives to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "headrace/trace/columns.h"
#include "headrace/trace/event_kind.h"

namespace headrace::trace {

/// In place of a row if there is none.
inline constexpr Row kNoRow = std::numeric_limits<Row>::max();

/// Launches and what they launched, tied together by the argument `correlation` of both.
///
/// A launch may have many rows on the device (a graph) and a row has one launch: where several calls carry
/// the same correlation (a runtime call and the driver's call inside it), the one that began first.
class Correlation {
 public:
  Correlation() = default;
  Correlation(const Columns& columns, const std::vector<EventKind>& kinds);

  /// The call that started a device row, kNoRow for rows of the host and where the file does not have it.
  Row launch_of(Row row) const noexcept { return launch_of_[row]; }

  /// The device rows that a call started, by their start; empty for other rows.
  std::span<const Row> started_by(Row launch) const noexcept;

  /// How far the device's stamps are from the host's: negative where most work begins before its launch, and
  /// by that much at least; positive where it begins more than ten minutes after it, and by that much at
  /// most. 0 where both have one clock. Nanoseconds.
  std::int64_t clock_gap_ns(const Columns& columns) const;

  /// Device rows whose launch is not in the file.
  std::size_t without_launch() const noexcept { return without_launch_; }

 private:
  Values<Row> launch_of_;
  /// Launches that started something, ascending; `started_` from `first_[i]` to `first_[i + 1]` belongs to
  /// the i-th.
  std::vector<Row> launches_;
  std::vector<std::uint32_t> first_;
  std::vector<Row> started_;
  std::size_t without_launch_ = 0;
};

/// `work` ran because `from`, on another thread, asked for it earlier.
struct Handover {
  Row work = kNoRow;
  Row from = kNoRow;
};

/// Handovers that the file records, in no particular order; empty for most traces.
///
/// The two ends of a task queue (categories `enqueue` and `dequeue`) carry one `correlation_id`. Events of
/// JAX and TensorFlow carry a type and a number (`_pt` and `_p` of what asks, `_ct` and `_c` of what does the
/// work). Where a file has no such events, flows of category `async_npu` lead from an operator to the work on
/// the device: then the outermost call of the runtime around that work's launch was handed over by the
/// operator.
std::vector<Handover> handovers_of(const Columns& columns, const std::vector<EventKind>& kinds,
                                   const Correlation& correlation);

/// Callers of the complete events on the host's lanes, from their times alone: the innermost event of the
/// same lane that encloses an event called it. Of two with the same times, the one that stands first in the
/// file is outside; an event without a duration is inside what encloses its moment.
///
/// Events of one thread cannot overlap half. Where they do in the file, the earlier one counts as ended when
/// the later one begins, and it is counted in `overlapping`.
///
/// The caller of work from another thread is the event that handed it over, so a chain of callers may
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
