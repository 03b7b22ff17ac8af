// Ranges that the user or the framework named, and the kernels that belong to them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "headrace/analysis/device/column_groups.h"
#include "headrace/analysis/device/device_work.h"

namespace headrace::analysis::device {

struct AnnotationsOptions {
  Scope scope;
  /// Ranges as the device saw them (from the first to the last kernel of each), else as the host did.
  bool on_device = true;
  /// At most so many names of each rank, those that took longest; 0: all.
  std::size_t most_names = 0;
  /// Only so many names as it takes to cover this share of the time of each rank.
  double time_share = 1;
  /// Names that contain one of these are never among the others.
  std::vector<std::string> always_shown;
};

using AnnotationsColumns = ColumnList<
    Integer<"rank">, Text<"name">, CallColumns,
    Optional<Integer<"works", "Pieces of work whose launch began inside, on the same thread.">>,
    Optional<Number<"device_span_s", "From the first of them to the end of the last, of each range.">>>;
using AnnotationKernelsColumns =
    ColumnList<Integer<"rank">, Text<"annotation", "The innermost range; empty: the work is in none.">,
               Text<"name">, Text<"kind">, CallColumns>;

struct Annotations {
  /// For each rank one row per name, the longest in total first. Ranges may lie inside each other, so totals
  /// do not add up; `total_pct` is of the sum of all of the rank. Names that the options leave out are one
  /// row "others" at the end. Ranges of the host also say what they took on the device; those that lie inside
  /// each other have the same work.
  Table ranges;
  /// The device work inside each, for each rank by annotation and kernel. `total_pct` is of all work of the
  /// rank.
  Table kernels;
};

/// On the device, work belongs to the shortest range of its own row in which its middle lies (ranges are
/// written a nanosecond wider than their kernels, on both sides). On the host, to the innermost range around
/// its launch, on the launching thread.
Annotations annotations(std::span<const trace::Trace> traces, const AnnotationsOptions& options = {});

/// For each of `work` the row of the range that it belongs to, kNoRow if it is in none.
std::vector<trace::Row> annotation_of(const trace::Trace& trace, std::span<const Work> work, bool on_device);

}  // namespace headrace::analysis::device
