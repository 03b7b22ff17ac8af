#include "abstain.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "../read/numbers.h"
#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/read/remote_reads.h"
#include "headrace/analysis/read/shared_waits.h"
#include "headrace/analysis/read/thresholds.h"
#include "headrace/analysis/words.h"

namespace headrace::analysis {
namespace {

/// Waits for what others may share (storage, a lock, a peer that answers): another number of readers may change how long
/// they take.
bool waits_for_shared(const profile::OperatorProfile& op) {
  const double shares = ratio(op.storage_wait_s.value_or(0), op.busy_s) + peer_share(op) + lock_share(op);
  return shares >= kMostOf || reads_remotely(op);
}

/// All operators in a loader's workers move with their number.
bool changes_readers(const profile::Profile& profile, const Change& change) {
  if (change.kind != Change::Kind::kWorkers) return false;
  const std::optional<Loader> loader = loader_of(profile);
  const std::vector<int> moved = loader ? loader->in_workers : std::vector<int>{change.index};
  return std::any_of(moved.begin(), moved.end(), [&](int op) {
    return op >= 0 && static_cast<std::size_t>(op) < profile.operators.size() &&
           waits_for_shared(profile.operators[static_cast<std::size_t>(op)]);
  });
}

/// More of them than now.
bool adds_readers(const profile::Profile& profile, const Change& change) {
  if (change.kind != Change::Kind::kWorkers && change.kind != Change::Kind::kProcesses) return false;
  const std::optional<Loader> loader = loader_of(profile);
  if (loader) return change.to > std::max(1, loader->workers);
  const auto index = static_cast<std::size_t>(change.index);
  return change.index >= 0 && index < profile.operators.size() &&
         change.to > profile.operators[index].workers;
}

}  // namespace

std::string not_reproduced(const profile::Profile& profile, double measured_over_simulated) {
  if (measured_over_simulated <= 0) return "the recorded run cannot be simulated";
  if (measured_over_simulated <= kLargestMiss && measured_over_simulated >= 1 / kLargestMiss) return "";
  return "the recorded run is not reproduced (a step of " + duration(profile.sink.step_s) + ", simulated " +
         duration(profile.sink.step_s / measured_over_simulated) + ")";
}

std::string filled_by_pools(double cpu_share, double pool_share) {
  if (cpu_share < CpuThresholds{}.spent || pool_share < kMostOf) return "";
  return "threads of a library fill the cores; what a change beside them would gain is not known";
}

Prediction abstain(std::string why) {
  Prediction prediction;
  prediction.why_not = std::move(why);
  return prediction;
}

std::string more_readers_in_vain(const profile::Profile& profile, const std::vector<Change>& changes) {
  const std::optional<Loader> loader = loader_of(profile);
  for (const Change& change : changes) {
    if (!adds_readers(profile, change)) continue;
    const std::vector<int> moved = loader ? loader->in_workers : std::vector<int>{change.index};
    for (const int op : moved) {
      if (std::string why = why_no_more_readers(profile, op); !why.empty()) return why;
    }
  }
  return "";
}

void widen_for_shared_waits(const profile::Profile& profile, const std::vector<Change>& changes,
                            Prediction& prediction) {
  const bool readers = std::any_of(changes.begin(), changes.end(),
                                   [&](const Change& change) { return changes_readers(profile, change); });
  if (!readers) return;
  prediction.low_s = std::min(prediction.low_s, profile.sink.step_s);
  prediction.high_s = std::max(prediction.high_s, profile.sink.step_s);
}

}  // namespace headrace::analysis
