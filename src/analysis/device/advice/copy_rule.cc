// Copies beside which nothing computes.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/device/advice/rule.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

struct Copies {
  std::string name;
  std::int64_t time_ns = 0;
  std::int64_t bytes = 0;
};

/// Those of one name that take the longest, which says from where to where they go.
Copies longest_copies(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  const trace::ArgumentColumn* const bytes = columns.argument("bytes");
  std::map<trace::Names::Id, Copies> by_name;
  for (const trace::Row row : trace.device_rows) {
    if (trace.kinds[row] != trace::EventKind::memory_copy) continue;
    Copies& copies = by_name[columns.name[row]];
    copies.time_ns += columns.duration_ns[row];
    copies.bytes += integer_at(bytes, row).value_or(0);
  }
  const auto longest = std::max_element(by_name.begin(), by_name.end(), [](const auto& a, const auto& b) {
    return a.second.time_ns < b.second.time_ns;
  });
  if (longest == by_name.end()) return {};
  longest->second.name = columns.names[longest->first];
  return longest->second;
}

std::string cure_of(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("Pageable"))
    return "pin_memory=True in the loader and .to(device, non_blocking=True): from pageable memory a copy is "
           "slow, "
           "and nothing runs beside it";
  if (has("HtoD") || has("Host-to-Device"))
    return "copy the next batch on a stream of its own while this one computes (pinned memory, "
           "non_blocking=True), "
           "or copy less: uint8 images, converted on the device";
  if (has("DtoH") || has("Device-to-Host"))
    return "bring results back every N steps, with non_blocking=True into pinned memory";
  return "keep tensors on the device and in one layout: .contiguous(), .clone() and .to() copy";
}

}  // namespace

Findings check_exposed_copies(Evidence& evidence) {
  RankShare worst;
  for (const trace::Trace& trace : evidence.traces())
    keep_worst(worst, idle_share(evidence, trace, "copy_s"));
  if (worst.trace == nullptr) return not_checked("the trace has no work on a device");
  std::string figures = figures_of(worst, "only copying for");
  const std::string source = "device_idle: copy_s of window_s, limit " + percent(kLimits.copy_share);
  if (worst.share() <= kLimits.copy_share) return nothing_found("few copies are exposed", figures, source);
  const Copies copies = longest_copies(*worst.trace);
  if (!copies.name.empty()) {
    figures += "; most of it " + copies.name;
    if (copies.bytes > 0 && copies.time_ns > 0)
      figures += " at " + memory_size(static_cast<double>(copies.bytes) / seconds(copies.time_ns)) + "/s";
  }
  return {{severity_of_share(worst.share()), "copies keep the device from computing", figures,
           cure_of(copies.name), source, worst.share()}};
}

}  // namespace headrace::analysis::device
