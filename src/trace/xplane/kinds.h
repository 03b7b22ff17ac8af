// What the planes, lines and events of an XPlane profile are, by their names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headrace::trace::xplane {

enum class PlaneKind : std::uint8_t { host, device, other };

struct PlaneName {
  PlaneKind kind = PlaneKind::other;
  std::string_view device_kind;  ///< "GPU", "TPU"
  std::int64_t device = 0;
};

/// "/host:CPU", "/device:TPU:3".
PlaneName plane_of(std::string_view name) noexcept;

/// What a line of a device's plane has. Only one line of a TPU is its work, and one what runs beside it: the
/// others are the same time again.
enum class LineKind : std::uint8_t { stream, operations, asynchronous, steps, repeats };

LineKind line_of(std::string_view name) noexcept;

/// The number in "Stream #7(MemcpyOther)".
std::optional<std::int64_t> stream_of(std::string_view line) noexcept;

/// What an event says beside its name that tells what it is.
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

}  // namespace headrace::trace::xplane
