// The kinds of an XPlane profile's planes, lines and events, by their names, and the stats that become
// arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "headrace/trace/reader.h"

namespace headrace::trace::xplane {

enum class PlaneKind : std::uint8_t { host, device, other };

struct PlaneName {
  PlaneKind kind = PlaneKind::other;
  std::string_view device_kind;  ///< "GPU", "TPU"
  std::int64_t device = 0;
};

/// "/host:CPU", "/device:TPU:3".
PlaneName plane_of(std::string_view name) noexcept;

/// Kind of a line of a device's plane. Only one line of a TPU is its work, and one what runs beside it: the
/// others are the same time again.
enum class LineKind : std::uint8_t { stream, operations, asynchronous, steps, repeats };

LineKind line_of(std::string_view name) noexcept;

/// The number in "Stream #7(MemcpyOther)".
std::optional<std::int64_t> stream_of(std::string_view line) noexcept;

/// Signs of an event's kind, beside its name.
struct EventSigns {
  bool has_step = false;
  bool has_correlation = false;
  bool has_stats = false;
  bool is_copy = false;
  bool is_fill = false;
  std::string_view hlo_category;
};

/// Categories as PyTorch's profiler has them; "" for what repeats other events.
std::string_view host_category(std::string_view name, bool is_python, const EventSigns& signs) noexcept;
std::string_view device_category(std::string_view name, LineKind line, const EventSigns& signs) noexcept;

/// "%fusion.1 = f32[8] fusion()" -> "fusion.1"; other names stay.
std::string_view operation_name(std::string_view name) noexcept;

/// Bytes in "kind:Unknown size:655360 dest:0" and "num_bytes:655360".
std::optional<std::int64_t> bytes_in(std::string_view memcpy_details) noexcept;

/// The number of a step.
inline constexpr std::string_view kStepNumber = "step_num";
/// Link from an event that asks for work to the one that does it, on another thread: type and number, of
/// both.
inline constexpr std::string_view kProducerType = "_pt";
inline constexpr std::string_view kProducer = "_p";
inline constexpr std::string_view kConsumerType = "_ct";
inline constexpr std::string_view kConsumer = "_c";
/// A call of an iterator of tf.data: its own number and that of its caller, the dataset, calls at
/// a time, elements that are ready, and how many may be.
inline constexpr std::string_view kIterator = "id";
inline constexpr std::string_view kIteratorAbove = "parent_id";
inline constexpr std::string_view kDataset = "name";
inline constexpr std::string_view kParallelism = "parallelism";
inline constexpr std::string_view kLevel = "buffered_elements";
inline constexpr std::string_view kCapacity = "buffer_limit";
/// Cores that tf.data counts with.
inline constexpr std::string_view kCores = "cpu_budget";

/// A copy, a fill, an operation of XLA; arguments where JSON is read.
inline constexpr std::string_view kCopyDetails = "memcpy_details";
inline constexpr std::string_view kFillDetails = "memset_details";
inline constexpr std::string_view kOperationKind = "hlo_category";

/// The argument for a stat, "" for those that are left in the file.
std::string_view argument_of(std::string_view stat) noexcept;

/// `options` with these arguments. `of_json`: and those by which the kind of an event is known.
ReadOptions with_arguments(ReadOptions options, bool of_json = false);

/// True for the JSON that lies beside a profile (`*.trace.json.gz`), by the names of its processes: planes
/// are processes and lines threads.
bool is_trace_json(const Columns& columns) noexcept;

/// Gives events the categories, streams, correlations and devices that `read_xplane` gives them; needs the
/// arguments of `with_arguments`. Of operations that hold others, all of their time stays: the file has it no
/// other way.
void adopt_trace_json(Columns& columns);

}  // namespace headrace::trace::xplane
