// Python's garbage collector stops the operator, or the loop inside GetNext.
#include <algorithm>

#include "sentences.h"

namespace headrace::analysis {

std::optional<Finding> judge_gc_pause(const Case& facts) {
  if (facts.candidate < 0) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  double gc_s = 0;
  for (const profile::WorkerProfile& worker : op.per_worker) gc_s += worker.gc_s;
  // The collections of the threads, whatever they ran: operators that share the threads share them.
  double busy_s = op.busy_s;
  if (const SegmentDemand* segment = facts.demand.of(facts.candidate)) {
    busy_s = 0;
    for (int i : segment->operators) busy_s += facts.profile.operators[static_cast<std::size_t>(i)].busy_s;
  }
  const double share = std::min(1.0, ratio(gc_s, busy_s));
  if (!facts.held_up_by(share)) return std::nullopt;
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
  finding.advice.push_back(with_shorter_items(facts, std::move(advice), share));
  return finding;
}

}  // namespace headrace::analysis
