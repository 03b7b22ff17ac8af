// Shares of a step: idle, exposed communication, the time before the first work, the data loader.
#include <algorithm>
#include <cmath>
#include <string>

#include "analysis/device/advice/rule.h"
#include "headrace/analysis/device/loader_waits.h"
#include "headrace/analysis/device/step_breakdown.h"

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
  if (all.share() <= kLimits.free_share)
    return nothing_found("the device is seldom idle within its steps", figures, source);
  const auto unexplained = [&](const StepParts& step) {
    return std::max(0.0, step.free - (evidence.launches_are_late ? step.launch : 0));
  };
  const RankShare rest = worst_rank(evidence.steps(), unexplained, whole_of);
  if (rest.share() <= kLimits.free_share)
    return nothing_found("rules above say why the device is idle", figures, source);
  figures = figures_of(rest, "idle, for no reason that other rules name, for", " of its steps");
  return {
      {rest.share() > kLimits.high_free_share ? Severity::high : Severity::medium,
       "the device is idle for much of its steps", figures,
       "no rule above explains it: gaps between kernels (larger batches, fused operators or graph mode make "
       "fewer), or launches that are not in the file",
       source, rest.share()}};
}

Findings check_exposed_communication(Evidence& evidence) {
  if (evidence.steps().empty()) return not_checked(kNoDevice);
  const RankShare worst =
      worst_rank(evidence.steps(), [](const StepParts& step) { return step.exposed; }, whole_of);
  const std::string figures = figures_of(worst, "communicating alone for", " of its steps");
  const std::string source = "step_time: communication_not_overlapped_s of stage_s + bubble_s, limit " +
                             percent(kLimits.exposed_communication_share);
  return found_if(
      worst.share() > kLimits.exposed_communication_share, "little communication is exposed",
      {Severity::high, "communication that no computation hides takes much of the step", figures,
       "if one rank comes late (slow_rank, stragglers) the others wait inside the collective: speed that "
       "rank up; else overlap gradients with the backward pass, or communicate less often",
       source, worst.share()});
}

Findings check_preparing(Evidence& evidence) {
  if (evidence.steps().empty()) return not_checked(kNoDevice);
  const RankShare all =
      worst_rank(evidence.steps(), [](const StepParts& step) { return step.preparing; }, with_preparing);
  if (all.rank < 0) return not_checked("the trace has no steps: call step() of the profiler after each");
  const std::string source = "step_time: preparing_s, limit " + percent(kLimits.preparing_share);
  std::string figures = figures_of(all, "no work for", " from the steps' starts on the host");
  if (all.share() <= kLimits.preparing_share)
    return nothing_found("the device starts soon after each step begins", figures, source);
  const auto unexplained = [&](const StepParts& step) {
    return std::max(0.0, step.preparing - step.held_up - (evidence.launches_are_late ? step.launch : 0));
  };
  const RankShare rest = worst_rank(evidence.steps(), unexplained, with_preparing);
  if (rest.share() <= kLimits.preparing_share)
    return nothing_found("rules above say why steps begin late on the device", figures, source);
  if (rest.part < all.part) figures += "; other rules do not name " + duration(rest.part) + " of it";
  return {{severity_of_share(rest.share() - kLimits.preparing_share),
           "the device has nothing to do while a step begins on the host", figures,
           "look at copies to the device and the first launches; waits for the input are data_loading's",
           source, rest.share()}};
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
  if (!any_loader) return nothing_found("no range of a data loader is in the steps", figures, source);
  return found_if(
      worst.share() > kLimits.data_loading_share, "the run is not limited by its input",
      {Severity::high, "the loop waits for its input", figures,
       "wrap the loader (hr.wrap) to see which operator limits it; more workers, a longer prefetch queue, "
       "pinned memory and files on a local disk are the usual changes",
       source, worst.share()});
}

}  // namespace headrace::analysis::device
