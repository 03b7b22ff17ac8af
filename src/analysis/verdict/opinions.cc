#include "headrace/analysis/verdict/opinions.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "../read/numbers.h"
#include "headrace/analysis/words.h"

namespace headrace::analysis {
namespace {

/// The one furthest down; -1 where nobody is known to put.
int index_of_producer(const profile::QueueProfile& queue) {
  const std::vector<int>& from = queue.from_operators;
  return from.empty() ? -1 : *std::max_element(from.begin(), from.end());
}

/// How full, 0 to 1, relative to what the operator to its right leaves in it.
double level(const profile::Profile& profile, const profile::QueueProfile& queue) {
  const double capacity = static_cast<double>(queue.capacity);
  const double fill =
      capacity > 0 ? std::max(ratio(queue.mean, capacity), queue.full_share) : 1 - queue.empty_share;
  // A consumer that takes many items at once drains the queue by design: then the producer's own state tells.
  const int producer = index_of_producer(queue);
  return producer < 0
             ? fill
             : std::max(fill, profile.operators[static_cast<std::size_t>(producer)].states.blocked_out);
}

template <class Wanted>
std::vector<int> queues_that(const profile::Profile& profile, Wanted&& wanted) {
  std::vector<int> queues;
  for (std::size_t i = 0; i < profile.queues.size(); ++i) {
    if (wanted(profile.queues[i])) queues.push_back(static_cast<int>(i));
  }
  return queues;
}

/// Operators that share threads are one place: what comes in at the first goes out at the last.
std::vector<int> place_of(const profile::Profile& profile, int op) {
  std::vector<int> members;
  const int segment = profile.operators[static_cast<std::size_t>(op)].segment;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const bool here = static_cast<int>(i) == op || (segment >= 0 && profile.operators[i].segment == segment);
    if (here) members.push_back(static_cast<int>(i));
  }
  return members;
}

int largest_of(const profile::Profile& profile, const std::vector<int>& members) {
  return *std::max_element(members.begin(), members.end(), [&](int a, int b) {
    return profile.operators[static_cast<std::size_t>(a)].demand_s <
           profile.operators[static_cast<std::size_t>(b)].demand_s;
  });
}

/// Queues into a place, those inside it left out.
std::vector<int> inputs_of(const profile::Profile& profile, const std::vector<int>& members) {
  const auto inside = [&](const std::vector<int>& ends) {
    return std::any_of(ends.begin(), ends.end(), [&](int op) { return contains(members, op); });
  };
  return queues_that(profile, [&](const profile::QueueProfile& queue) {
    return inside(queue.to_operators) && !inside(queue.from_operators);
  });
}

/// A batch on its way is charged to the operator that passes it on, if the row names nobody.
const std::string& charged_to(const profile::Profile& profile, const profile::LedgerRow& row) {
  if (!row.op.empty() || row.what != profile::WaitReason::handoff) return row.op;
  for (const profile::OperatorProfile& op : profile.operators) {
    if (op.kind == profile::OperatorKind::handoff) return op.name;
  }
  return row.op;
}

}  // namespace

QueueOpinion judge_queues(const profile::Profile& profile, const CandidateThresholds& thresholds) {
  QueueOpinion opinion;
  std::vector<int> right = queues_that(profile, [&](const profile::QueueProfile& queue) {
    return queue.to_sink &&
           static_cast<double>(queue.samples.value_or(UINT64_MAX)) >= thresholds.fewest_samples;
  });
  if (right.empty()) return opinion;
  opinion.evidence.rule = Rule::queues;
  double right_level = 0;
  const profile::QueueProfile* right_queue = nullptr;
  // One step per operator at most: a graph with a cycle ends here too.
  for (std::size_t step = 0; step <= profile.operators.size() && !right.empty(); ++step) {
    const auto lowest = std::min_element(right.begin(), right.end(), [&](int a, int b) {
      return level(profile, profile.queues[static_cast<std::size_t>(a)]) <
             level(profile, profile.queues[static_cast<std::size_t>(b)]);
    });
    const profile::QueueProfile& queue = profile.queues[static_cast<std::size_t>(*lowest)];
    const double here = level(profile, queue);
    if (here >= thresholds.queue_is_high) {
      if (opinion.op < 0) {
        opinion.evidence.says = "the queue before the training loop (" + in_a_table(queue) + ") is not low";
        opinion.evidence.figures = {{"mean", queue.mean}, {"full_share", queue.full_share}};
        return opinion;
      }
      const std::string& op = profile.operators[static_cast<std::size_t>(opinion.op)].name;
      opinion.evidence.says = (is_named_after_producer(queue) ? "the queue from " + queue.from + " to " + op
                                                              : queue.name + " before " + op) +
                              " is full " + percent(queue.full_share) + " of the time, " +
                              (is_named_after_producer(*right_queue) ? "the one behind " + right_queue->from
                                                                     : right_queue->name + " after it") +
                              " empty " + percent(right_queue->empty_share);
      opinion.left = here;
      opinion.evidence.figures = {{"before_full_share", queue.full_share},
                                  {"after_empty_share", right_queue->empty_share}};
      return opinion;
    }
    const int producer = index_of_producer(queue);
    if (producer < 0) break;
    const std::vector<int> place = place_of(profile, producer);
    opinion.op = largest_of(profile, place);
    right_level = here;
    opinion.right = here;
    right_queue = &queue;
    right = inputs_of(profile, place);
  }
  if (opinion.op >= 0) {
    opinion.evidence.says =
        "every queue after " + profile.operators[static_cast<std::size_t>(opinion.op)].name + " is low (" +
        in_a_sentence(*right_queue) + " is empty " + percent(right_queue->empty_share) + " of the time)";
    opinion.evidence.figures = {{"after_level", right_level},
                                {"after_empty_share", right_queue->empty_share}};
  }
  return opinion;
}

double charged_share(const profile::Profile& profile, const std::string& op) {
  double total = 0;
  double charged = 0;
  for (const profile::LedgerRow& row : profile.stall_ledger) {
    total += row.seconds;
    if (charged_to(profile, row) == op) charged += row.seconds;
  }
  return total > 0 ? charged / total : -1;
}

LedgerOpinion judge_ledger(const profile::Profile& profile) {
  std::map<std::string, double> per_operator;
  double total = 0;
  double known = 0;
  for (const profile::LedgerRow& row : profile.stall_ledger) {
    total += row.seconds;
    if (row.what == profile::WaitReason::unknown) continue;
    known += row.seconds;
    const std::string& op = charged_to(profile, row);
    if (!op.empty()) per_operator[op] += row.seconds;
  }
  LedgerOpinion opinion;
  opinion.known_share = ratio(known, total);
  if (total <= 0) return opinion;
  const std::string* name = nullptr;
  double most = 0;
  for (const auto& [op, seconds] : per_operator) {
    if (seconds > most) {
      most = seconds;
      name = &op;
    }
  }
  opinion.evidence.rule = Rule::ledger;
  opinion.evidence.figures = {{"wait_s", total}, {"known_share", opinion.known_share}};
  if (name == nullptr || most < kMostOf * total) {
    opinion.evidence.says = "the ledger charges the wait to no single operator";
    return opinion;
  }
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    if (profile.operators[i].name == *name) opinion.op = static_cast<int>(i);
  }
  opinion.evidence.says = percent(most / total) + " of the wait was for a batch in " + *name;
  opinion.evidence.figures["charged_share"] = most / total;
  return opinion;
}

}  // namespace headrace::analysis
