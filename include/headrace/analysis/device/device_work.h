// What the devices of one rank did, in the order of time: what most tables begin with.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/analysis/device/intervals.h"
#include "headrace/analysis/device/kernel_kind.h"
#include "headrace/analysis/device/scope.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// A queue of a device. kAbsent where the file has no number for it.
struct Stream {
  std::int64_t device = trace::kAbsent;
  std::int64_t stream = trace::kAbsent;

  friend auto operator<=>(const Stream&, const Stream&) = default;
};

/// The queue whose row an event of the device stands on: its arguments `device` and `stream`, else what the
/// names of its row say.
Stream stream_of(const trace::Columns& columns, trace::Row row);

/// Options of the tables that have a row per rank.
struct DeviceOptions {
  Scope scope;
  /// A row per device of each rank, with a column `device` behind `rank`. Otherwise all devices of a rank are
  /// one: it is idle when none of them works.
  bool per_device = false;
};

/// One kernel, copy or fill. Waits on the device's rows do not count: they keep nothing busy.
struct Work {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  trace::Row row = 0;
  /// Index into `DeviceWork::streams`.
  std::uint32_t stream = 0;
  KernelKind kind = KernelKind::other;
};

/// The work of one device, or of one stream, in the order of time.
struct WorkOf {
  Stream of;
  std::vector<Work> work;
};

struct DeviceWork {
  /// By start; of two with the same start, in the order of the file.
  std::vector<Work> work;
  /// Ascending by device and stream.
  std::vector<Stream> streams;
  /// What has to be said beside the answer: "rank 2 has no work on a device".
  std::vector<std::string> notes;

  /// The work divided up: one entry per device (its `of.stream` is meaningless), or one with everything.
  /// Empty if there is no work. Moves `work` out of this object, because it is large.
  std::vector<WorkOf> by_device(bool per_device) &&;
  /// One entry per stream. Moves `work` out too.
  std::vector<WorkOf> by_stream() &&;
};

DeviceWork device_work(const trace::Trace& trace, const Scope& scope);

/// Most rows that a table with one for each piece of device work may have. Columns that are made this long
/// ahead are not copied while they grow; what is not written to costs nothing.
std::size_t most_works(std::span<const trace::Trace> traces) noexcept;

/// When something ran, and when something of one kind did.
Intervals busy(std::span<const Work> work);
Intervals busy(std::span<const Work> work, KernelKind kind);

/// From the first start to the last end.
std::int64_t span_ns(std::span<const Work> work) noexcept;

}  // namespace headrace::analysis::device
