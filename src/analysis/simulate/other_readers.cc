#include "other_readers.h"

#include <algorithm>
#include <optional>

#include "../read/numbers.h"
#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/read/remote_reads.h"
#include "headrace/analysis/read/shared_waits.h"
#include "headrace/analysis/read/thresholds.h"

namespace headrace::analysis {
namespace {

/// Share of an operator's time in waits for what others may share (storage, a lock, a peer that answers), from which on
/// another number of readers may change how long they take.
constexpr double kShared = 0.3;

bool waits_for_shared(const profile::OperatorProfile& op) {
  const double shares = ratio(op.storage_wait_s.value_or(0), op.busy_s) + peer_share(op) + lock_share(op);
  return shares >= kShared || reads_remotely(op);
}

/// Of a loader, all operators in its workers move with their number.
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
