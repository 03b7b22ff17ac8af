#include "trace/xplane/kinds.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace headrace::trace::xplane {
namespace {

std::optional<std::int64_t> leading_number(std::string_view text) noexcept {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && number >= 0 ? std::optional(number) : std::nullopt;
}

using enum ArgumentKind;

constexpr std::array<std::pair<std::string_view, ArgumentKind>, 12> kArguments = {{
    {kStepNumber, integer},
    {kProducerType, integer},
    {kProducer, integer},
    {kConsumerType, integer},
    {kConsumer, integer},
    {kIterator, integer},
    {kIteratorAbove, integer},
    {kDataset, text},
    {kParallelism, integer},
    {kLevel, integer},
    {kCapacity, integer},
    {kCores, integer},
}};

}  // namespace

PlaneName plane_of(std::string_view name) noexcept {
  constexpr std::string_view kDevice = "/device:";
  if (name.starts_with("/host:CPU")) return {PlaneKind::host, "", 0};
  if (!name.starts_with(kDevice)) return {};
  name.remove_prefix(kDevice.size());
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos || name.starts_with("CUSTOM")) return {};
  const auto number = leading_number(name.substr(colon + 1));
  if (!number) return {};
  return {PlaneKind::device, name.substr(0, colon), *number};
}

LineKind line_of(std::string_view name) noexcept {
  if (name.starts_with("Stream #")) return LineKind::stream;
  if (name == "XLA Ops") return LineKind::operations;
  if (name == "Async XLA Ops") return LineKind::asynchronous;
  return name == "Steps" ? LineKind::steps : LineKind::repeats;
}

std::optional<std::int64_t> stream_of(std::string_view line) noexcept {
  constexpr std::string_view kStream = "Stream #";
  return line.starts_with(kStream) ? leading_number(line.substr(kStream.size())) : std::nullopt;
}

std::string_view host_category(std::string_view name, bool is_python, const EventSigns& signs) noexcept {
  if (signs.has_step) return "user_annotation";
  if (signs.has_correlation) return "cuda_runtime";
  if (name.starts_with('$')) return "python_function";
  // Annotations of the user and marks inside of the runtime look alike but for their names.
  const bool is_plain = name.find("::") == std::string_view::npos &&
                        name.find_first_of("( ") == std::string_view::npos && !signs.has_stats;
  return is_python && is_plain ? "user_annotation" : "cpu_op";
}

std::string_view device_category(std::string_view name, LineKind line, const EventSigns& signs) noexcept {
  if (line == LineKind::steps) return "gpu_user_annotation";
  if (line == LineKind::repeats) return "";
  const std::string_view what = signs.hlo_category.empty() ? name : signs.hlo_category;
  // The core waits in the second half of a copy, which therefore is a copy, not computation.
  if (signs.is_copy || what.starts_with("copy-start") || what.starts_with("copy-done")) return "gpu_memcpy";
  if (signs.is_fill) return "gpu_memset";
  // The device waits for the host, or for what runs on the asynchronous line.
  constexpr std::array<std::string_view, 4> kWaits = {"infeed", "outfeed", "async-done", "slice-done"};
  const bool waits = std::any_of(kWaits.begin(), kWaits.end(), [&](std::string_view wait) {
    return what.starts_with(wait) || name.starts_with(wait);
  });
  return waits ? "cuda_sync" : "kernel";
}

std::string_view operation_name(std::string_view name) noexcept {
  if (!name.starts_with('%')) return name;
  name.remove_prefix(1);
  return name.substr(0, name.find(" = "));
}

std::optional<std::int64_t> bytes_in(std::string_view memcpy_details) noexcept {
  constexpr std::array<std::string_view, 2> kSizes = {"num_bytes:", "size:"};
  for (const std::string_view key : kSizes) {
    const std::size_t at = memcpy_details.find(key);
    if (at != std::string_view::npos) return leading_number(memcpy_details.substr(at + key.size()));
  }
  return std::nullopt;
}

std::string_view argument_of(std::string_view stat) noexcept {
  const auto* const at = std::find_if(kArguments.begin(), kArguments.end(),
                                      [&](const auto& each) { return each.first == stat; });
  return at == kArguments.end() ? std::string_view() : at->first;
}

ReadOptions with_arguments(ReadOptions options, bool of_json) {
  const auto add = [&](std::string_view name, ArgumentKind kind) {
    const bool is_there = std::any_of(options.arguments.begin(), options.arguments.end(),
                                      [&](const Argument& each) { return each.name == name; });
    if (!is_there) options.arguments.push_back({std::string(name), kind});
  };
  for (const auto& [name, kind] : kArguments) add(name, kind);
  for (const std::string_view name : {kCopyDetails, kFillDetails, kOperationKind}) {
    if (of_json) add(name, text);
  }
  if (of_json) add("correlation_id", integer);
  return options;
}

}  // namespace headrace::trace::xplane
