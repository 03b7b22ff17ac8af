// Python's garbage collector stops the operator, or the loop inside GetNext.
#include <algorithm>

#include "sentences.h"

namespace headrace::analysis {

std::optional<Finding> judge_gc_pause(const Case& facts) {
  if (facts.candidate < 0) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  double gc_s = 0;
  double busy_s = 0;
  for (const profile::WorkerProfile& worker : op.per_worker) {
    gc_s += worker.gc_s;
    busy_s += worker.busy_s;
  }
  // The thread's collections, whatever it ran: operators that share the thread share them.
  const SegmentDemand* segment = facts.demand.of(facts.candidate);
  if (segment != nullptr) {
    for (int i : segment->operators) {
      if (i == facts.candidate) continue;
      for (const profile::WorkerProfile& worker :
           facts.profile.operators[static_cast<std::size_t>(i)].per_worker)
        busy_s += worker.busy_s;
    }
  }
  const double share = std::min(1.0, ratio(gc_s, busy_s));
  if (share < facts.thresholds.collection.busy_share) return std::nullopt;
  Finding finding;
  finding.headline = "Python's garbage collector stops " + op.name;
  finding.evidence =
      cause_evidence("the threads of " + op.name + " spend " + percent(share) +
                         " of their busy time in Python's garbage collector (" + duration(gc_s) + " in all)",
                     {{"gc_share", share}, {"gc_s", gc_s}});
  Advice advice = in_words(
      "call gc.freeze() once the dataset is loaded (in worker_init_fn for workers), or gc.disable() there "
      "and "
      "gc.collect() between epochs; keep large indices in arrays, not in lists of Python objects");
  const Prediction without =
      facts.predictor.predict({{Change::Kind::kService, facts.candidate, 1, 1 - std::min(share, 0.99)}});
  finding.advice.push_back(with_prediction(std::move(advice), facts.gate.step_s, without));
  return finding;
}

}  // namespace headrace::analysis
