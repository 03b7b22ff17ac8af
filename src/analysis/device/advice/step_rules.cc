// Shares of a step: idle, exposed communication, no work yet, the data loader, copies alone.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/device/advice/rule.h"
#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"
#include "headrace/analysis/device/steps.h"

namespace headrace::analysis::device {
namespace {

/// The rank with the largest share of `part` in `whole`, over its steps.
template <class Part, class Whole>
RankShare worst_rank(const std::vector<StepParts>& steps, Part part, Whole whole) {
  std::map<std::int64_t, RankShare> ranks;
  for (const StepParts& step : steps) {
    RankShare& rank = ranks[step.rank];
    rank.rank = step.rank;
    if (!std::isfinite(part(step))) continue;
    rank.part += part(step);
    rank.whole += whole(step);
  }
  RankShare worst;
  for (const auto& [number, rank] : ranks) keep_worst(worst, rank);
  return worst;
}

double whole_of(const StepParts& step) { return step.whole; }
double with_preparing(const StepParts& step) { return step.whole + step.preparing; }

constexpr const char* kNoDevice = "the trace has no work on a device";

}  // namespace

Findings check_free_time(Evidence& evidence) {
  if (evidence.steps().empty()) return not_checked(kNoDevice);
  const RankShare all =
      worst_rank(evidence.steps(), [](const StepParts& step) { return step.free; }, whole_of);
  std::string figures = figures_of(all, "neither computing nor communicating for", " of its steps");
  const std::string source = "step_time: free_s of stage_s + bubble_s, limit " + percent(kLimits.free_share);
  if (all.share() <= kLimits.free_share) return {{Severity::none, figures, source}};
  const auto unexplained = [&](const StepParts& step) {
    return std::max(0.0, step.free - (evidence.launches_are_late ? step.launch : 0));
  };
  const RankShare rest = worst_rank(evidence.steps(), unexplained, whole_of);
  if (rest.share() <= kLimits.free_share)
    return {{Severity::none, figures, source, 0, "rules above say why the device is idle"}};
  figures = figures_of(rest, "idle, for no reason that other rules name, for", " of its steps");
  return {{rest.share() > kLimits.high_free_share ? Severity::high : Severity::medium, figures, source,
           rest.share()}};
}

Findings check_exposed_communication(Evidence& evidence) {
  if (evidence.steps().empty()) return not_checked(kNoDevice);
  const RankShare worst =
      worst_rank(evidence.steps(), [](const StepParts& step) { return step.exposed; }, whole_of);
  return found_if(worst.share() > kLimits.exposed_communication_share,
                  {Severity::high, figures_of(worst, "communicating alone for", " of its steps"),
                   "step_time: communication_not_overlapped_s of stage_s + bubble_s, limit " +
                       percent(kLimits.exposed_communication_share),
                   worst.share()});
}

Findings check_preparing(Evidence& evidence) {
  if (evidence.steps().empty()) return not_checked(kNoDevice);
  const RankShare all =
      worst_rank(evidence.steps(), [](const StepParts& step) { return step.preparing; }, with_preparing);
  if (all.rank < 0) return not_checked("the trace has no steps: call step() of the profiler after each");
  const std::string source = "step_time: preparing_s, limit " + percent(kLimits.preparing_share);
  std::string figures = figures_of(all, "no work for", " from the steps' starts on the host");
  if (all.share() <= kLimits.preparing_share) return {{Severity::none, figures, source}};
  const auto unexplained = [&](const StepParts& step) {
    return std::max(0.0, step.preparing - step.held_up - (evidence.launches_are_late ? step.launch : 0));
  };
  const RankShare rest = worst_rank(evidence.steps(), unexplained, with_preparing);
  if (rest.share() <= kLimits.preparing_share)
    return {{Severity::none, figures, source, 0, "rules above say why steps begin late on the device"}};
  if (rest.part < all.part) figures += "; other rules do not name " + duration(rest.part) + " of it";
  return {{severity_of_share(rest.share() - kLimits.preparing_share), figures, source, rest.share()}};
}

Findings check_data_loading(Evidence& evidence) {
  RankShare worst;
  bool any_loader = false;
  for (const trace::Trace& trace : evidence.traces()) {
    const StepBreakdown breakdown = step_breakdown({&trace, 1});
    RankShare rank{&trace, trace.rank};
    for (std::size_t row = 0; row < breakdown.steps.rows(); ++row) {
      rank.part += breakdown.steps.numbers("data_loader_s")[row];
      rank.whole += breakdown.steps.numbers("total_s")[row];
    }
    any_loader |= rank.part > 0;
    keep_worst(worst, rank);
  }
  if (worst.rank < 0) return not_checked("the trace has no event of the host");
  std::string figures = figures_of(worst, "in the data loader for", " of its steps");
  const std::string wait = longest_loader_wait(*worst.trace);
  if (!wait.empty() && !wait.starts_with("enumerate(")) figures += ", in " + shown_range(wait);
  const std::string source = "step_breakdown: data_loader_s of total_s (ranges of the loader), limit " +
                             percent(kLimits.data_loading_share);
  if (!any_loader) return {{Severity::none, figures, source, 0, "no range of a data loader is in the steps"}};
  return found_if(worst.share() > kLimits.data_loading_share,
                  {Severity::high, figures, source, worst.share()});
}

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
           "slow, and nothing runs beside it";
  if (has("HtoD") || has("Host-to-Device"))
    return "copy the next batch on a stream of its own while this one computes (pinned memory, "
           "non_blocking=True), or copy less: uint8 images, converted on the device";
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
  if (worst.share() <= kLimits.copy_share) return {{Severity::none, figures, source}};
  const Copies copies = longest_copies(*worst.trace);
  if (!copies.name.empty()) {
    figures += "; most of it " + copies.name;
    if (copies.bytes > 0 && copies.time_ns > 0)
      figures += " at " + memory_size(static_cast<double>(copies.bytes) / seconds(copies.time_ns)) + "/s";
  }
  return {{severity_of_share(worst.share()), figures, source, worst.share(), "", cure_of(copies.name)}};
}

}  // namespace headrace::analysis::device
