#include "headrace/analysis/read/demand.h"

#include <algorithm>
#include <map>

#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/words.h"

#include "numbers.h"

namespace headrace::analysis {

std::optional<std::uint64_t> level_samples(const profile::Profile& profile) noexcept {
  std::optional<std::uint64_t> fewest;
  for (const profile::QueueProfile& queue : profile.queues) {
    if (queue.samples) fewest = std::min(fewest.value_or(*queue.samples), *queue.samples);
  }
  return fewest;
}

double cpu_per_batch_s(const profile::OperatorProfile& op) noexcept {
  return op.cpu_s && op.demand_s > 0 ? op.demand_s * op.workers * std::min(1.0, ratio(*op.cpu_s, op.busy_s))
                                     : 0;
}

double all_cpu_per_batch_s(const profile::OperatorProfile& op) noexcept {
  const double pool = ratio(op.pool_cpu_s.value_or(0), op.busy_s);
  // Less is that of the thread that sends batches.
  return cpu_per_batch_s(op) + (pool >= kHardly ? std::max(0.0, op.demand_s) * op.workers * pool : 0);
}

double input_cpu_s(const profile::Profile& profile) noexcept {
  double sum = 0;
  for (const profile::OperatorProfile& op : profile.operators) sum += all_cpu_per_batch_s(op);
  return sum;
}

int operator_with_most_cpu(const profile::Profile& profile) noexcept {
  const auto& operators = profile.operators;
  const auto most_cpu = std::max_element(
      operators.begin(), operators.end(),
      [](const auto& a, const auto& b) { return all_cpu_per_batch_s(a) < all_cpu_per_batch_s(b); });
  const bool known = most_cpu != operators.end() && all_cpu_per_batch_s(*most_cpu) > 0;
  return known ? static_cast<int>(most_cpu - operators.begin()) : -1;
}

double cpu_bound_share(const profile::OperatorProfile& op) noexcept {
  if (!op.cpu_s || op.busy_s <= 0) return -1;
  return std::min(1.0, (*op.cpu_s + op.run_queue_wait_s.value_or(0)) / op.busy_s);
}

double core_wait_share(const profile::OperatorProfile& op) noexcept {
  return ratio(op.run_queue_wait_s.value_or(0), op.busy_s);
}

const SegmentDemand* DemandRanking::of(int index) const noexcept {
  for (const SegmentDemand& segment : segments) {
    if (std::find(segment.operators.begin(), segment.operators.end(), index) != segment.operators.end()) {
      return &segment;
    }
  }
  return nullptr;
}

std::vector<double> own_demands(const profile::Profile& profile) {
  // An inclusive operator counts where nothing finer is known, or with what its finer parts in the sink's
  // thread leave.
  bool exact_known = false;
  bool exact_beside = false;
  double exact_in_sink_s = 0;
  for (const profile::OperatorProfile& op : profile.operators) {
    if (op.fidelity == profile::Fidelity::inclusive || op.demand_s <= 0) continue;
    exact_known = true;
    exact_beside = exact_beside || !op.in_sink;
    if (op.in_sink) exact_in_sink_s += op.demand_s;
  }
  std::vector<double> demands;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const profile::OperatorProfile& op = profile.operators[i];
    double demand_s = op.demand_s;
    if (op.fidelity == profile::Fidelity::inclusive && exact_known) {
      demand_s = op.in_sink && !exact_beside ? op.demand_s - exact_in_sink_s : 0;
    }
    demands.push_back(runs_in_step(profile, static_cast<int>(i)) ? 0 : std::max(0.0, demand_s));
  }
  return demands;
}

DemandRanking rank_demand(const profile::Profile& profile, double step_s) {
  const auto& ops = profile.operators;
  const std::vector<double> demands = own_demands(profile);
  DemandRanking ranking;
  std::vector<double> largest_s;          // demand of each segment's largest operator
  std::map<int, std::size_t> segment_at;  // segment number -> place in ranking.segments
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const profile::OperatorProfile& op = ops[i];
    // A thread that waits for the interpreter lock is held up by those that hold it.
    const double demand_s = demands[i] * (1 - std::min(1.0, ratio(op.lock_wait_s.value_or(0), op.busy_s)));
    if (demand_s <= 0) continue;
    // All that runs inside GetNext shares the sink's thread, whatever its segment is called.
    const int number = op.in_sink ? -2 : op.segment;
    const auto known = number == -1 ? segment_at.end() : segment_at.find(number);
    const std::size_t at = known == segment_at.end() ? ranking.segments.size() : known->second;
    if (at == ranking.segments.size()) {
      ranking.segments.emplace_back();
      largest_s.push_back(0);
      if (number != -1) segment_at[number] = at;
    }
    SegmentDemand& segment = ranking.segments[at];
    const int index = static_cast<int>(i);
    if (segment.largest < 0 || demand_s > largest_s[at]) {
      segment.largest = index;
      largest_s[at] = demand_s;
    }
    segment.operators.push_back(index);
    segment.demand_s += demand_s;
    segment.in_sink = segment.in_sink || op.in_sink;
  }
  for (SegmentDemand& segment : ranking.segments) segment.utilisation = ratio(segment.demand_s, step_s);
  std::stable_sort(ranking.segments.begin(), ranking.segments.end(),
                   [](const SegmentDemand& a, const SegmentDemand& b) { return a.demand_s > b.demand_s; });
  if (!ranking.empty()) {
    const SegmentDemand& first = ranking.first();
    const profile::OperatorProfile& op = ops[static_cast<std::size_t>(first.largest)];
    ranking.evidence.rule = Rule::demand;
    ranking.evidence.says = op.name + " needs " + duration(first.demand_s) + " a step";
    ranking.evidence.figures = {{"demand_s", first.demand_s}, {"compute_s", profile.sink.compute_s}};
    if (ranking.segments.size() > 1) {
      const SegmentDemand& second = ranking.segments[1];
      ranking.evidence.says +=
          "; next: " + ops[static_cast<std::size_t>(second.largest)].name + " " + duration(second.demand_s);
      ranking.evidence.figures["next_demand_s"] = second.demand_s;
    }
    ranking.evidence.says += "; the training step itself " + duration(profile.sink.compute_s);
  }
  return ranking;
}

}  // namespace headrace::analysis
