// The work of a device in a part of a trace: what kind each piece is of, when it ran, and on which stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/analysis/device/intervals.h"
#include "headrace/trace/event_kind.h"
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

  /// Remarks for readers of the result, a sentence each.
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

enum class KernelKind : std::uint8_t { computation, communication, memory, other };
inline constexpr std::size_t kKernelKinds = 4;

const char* to_string(KernelKind kind) noexcept;

/// By the kernel's name alone.
///
/// communication: kernels of NCCL and RCCL under every name they had (`ncclKernel_...`, `ncclDevKernel_...`),
/// HCCL, oneCCL, MSCCL, NVSHMEM and vLLM's `cross_device_reduce`. memory: copies and fills (`Memcpy`,
/// `Memset`, `hipMemcpy`, ROCm's blit kernels, `dma`). other: waits and what a device's own runtime ran. All
/// else computes.
KernelKind kind_of_kernel(std::string_view name) noexcept;

/// The profiler's own category comes first: an event of a copy's or a fill's category is memory, whatever
/// its name; so for `computation` and `collective`.
KernelKind kind_of_work(trace::EventKind kind, std::string_view name) noexcept;

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
  /// Remarks on the result: "rank 2 has no work on a device".
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
