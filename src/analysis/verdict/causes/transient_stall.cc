// One to three long waits in a run that is healthy without them.
#include <algorithm>

#include "sentences.h"

namespace headrace::analysis {
namespace {

constexpr std::size_t kMaxStalls = 3;
/// For one stall; n of them need n times n as many. In fewer steps, what stalls now and then does so often.
constexpr std::size_t kStepsOfStall = 15;

/// Items of one operator that took about as long as the stall: many of them are slow samples, not one stall.
std::size_t slow_items(const Case& facts, double stall_s) {
  std::size_t most = 0;
  for (const profile::OperatorProfile& op : facts.profile.operators) {
    std::size_t here = 0;
    for (const profile::WorkerProfile& worker : op.per_worker) {
      for (const profile::ServiceSample& sample : worker.slowest)
        here += sample.wall_s >= kMostOf * stall_s ? 1 : 0;
    }
    most = std::max(most, here);
  }
  return most;
}

/// Number of waits to leave out for the rest to be healthy; 0 if no small number does that.
std::size_t stalls_that_explain(const Case& facts) {
  const profile::Profile& profile = facts.profile;
  const StallThresholds& thresholds = facts.thresholds.stall;
  const auto& waits = profile.sink.longest_waits;
  double left_s = profile.sink.starved_share * profile.elapsed_s;
  double elapsed_s = profile.elapsed_s;
  for (std::size_t n = 1; n <= std::min(kMaxStalls, waits.size()); ++n) {
    const double wait_s = waits[n - 1].wait_s;
    left_s = std::max(0.0, left_s - wait_s);
    elapsed_s = std::max(0.0, elapsed_s - wait_s);
    if (wait_s < thresholds.least_s || facts.gate.steps < n * n * kStepsOfStall) return 0;
    const double next_s = n < waits.size() ? waits[n].wait_s : 0;
    if (ratio(left_s, elapsed_s) < facts.thresholds.gate.starved_share && next_s < thresholds.next * wait_s)
      return n;
  }
  return 0;
}

}  // namespace

std::optional<Finding> judge_transient_stall(const Case& facts) {
  const profile::Profile& profile = facts.profile;
  const std::size_t stalls = stalls_that_explain(facts);
  if (stalls == 0 || facts.lock.contended) return std::nullopt;
  // Slow to fetch or to copy all the time: without the stall it would not be healthy.
  if (facts.gate.served_share >= facts.thresholds.gate.served_share) return std::nullopt;
  double lost_s = 0;
  for (std::size_t i = 0; i < stalls; ++i) lost_s += profile.sink.longest_waits[i].wait_s;
  // In a run that is healthy anyway, a hiccup is worth a word only where it costs something.
  if (facts.gate.state == Gate::State::kHealthy && lost_s < facts.thresholds.stall.worth_s)
    return std::nullopt;
  const double shortest_s = profile.sink.longest_waits[stalls - 1].wait_s;
  if (slow_items(facts, shortest_s) > kMaxStalls) return std::nullopt;
  const profile::Stall& first = profile.sink.longest_waits.front();
  Finding finding;
  finding.headline =
      (stalls == 1 ? "one stall of " : counted(static_cast<double>(stalls), "stall") + ", together ") +
      duration(lost_s) + "; otherwise healthy";
  finding.evidence = cause_evidence("the longest wait was " + duration(first.wait_s) + " at step " +
                                        std::to_string(first.step) + ", " + duration(first.at_s) +
                                        " into the loop; without it the training loop does not starve",
                                    {{"stalls", static_cast<double>(stalls)},
                                     {"lost_s", lost_s},
                                     {"at_s", first.at_s},
                                     {"step", static_cast<double>(first.step)}});
  return finding;
}

}  // namespace headrace::analysis
