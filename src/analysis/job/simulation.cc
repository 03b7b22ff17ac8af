#include "headrace/analysis/job/simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "dependencies.h"
#include "headrace/profile/errors.h"

namespace headrace::analysis::job {
namespace {

using Type = OperationType;

bool is_computed(Type type) noexcept {
  return type == Type::forward_compute || type == Type::backward_compute || type == Type::optimizer;
}

bool is_between_stages(Type type) noexcept { return kind_of(type) != name_of(type); }

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double each : values) sum += each;
  return sum / static_cast<double>(values.size());
}

/// Reorders the values.
double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

template <class T>
std::vector<T> sorted(const std::set<T>& values) {
  return {values.begin(), values.end()};
}

/// The groups in an order in which each comes after all that its members need; shorter than `groups` if there is
/// a cycle.
std::vector<std::uint32_t> order_of(const Dependencies& dependencies) {
  const std::size_t count = dependencies.groups.size();
  std::vector<std::uint32_t> group_of(dependencies.needs.size());
  for (std::uint32_t group = 0; group < count; ++group) {
    for (const std::uint32_t each : dependencies.groups[group]) group_of[each] = group;
  }
  std::vector<std::vector<std::uint32_t>> after(count);
  std::vector<std::size_t> open(count);
  for (std::uint32_t each = 0; each < dependencies.needs.size(); ++each) {
    for (const std::uint32_t earlier : dependencies.needs[each]) {
      after[group_of[earlier]].push_back(group_of[each]);
      ++open[group_of[each]];
    }
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t group = 0; group < count; ++group) {
    if (open[group] == 0) order.push_back(group);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const std::uint32_t later : after[order[i]]) {
      if (--open[later] == 0) order.push_back(later);
    }
  }
  return order;
}

}  // namespace

bool Selection::contains(const Operation& operation) const {
  const bool fits =
      (!dp_rank || *dp_rank == operation.dp_rank) && (!stage || *stage == operation.stage) &&
      (!kind || *kind == kind_of(operation.type)) &&
      (workers.empty() || std::find(workers.begin(), workers.end(),
                                    std::pair(operation.dp_rank, operation.stage)) != workers.end());
  return fits != others;
}

JobSimulation::JobSimulation(Operations operations) : operations_(std::move(operations)) {
  if (operations_.empty()) throw UsageError("a job without operations cannot be simulated");
  if (operations_.size() > std::numeric_limits<std::uint32_t>::max())
    throw UsageError("a job of more than 4 billion operations cannot be simulated");
  std::map<std::int64_t, std::vector<std::uint32_t>> by_step;
  std::set<std::int32_t> dp_ranks, stages;
  std::set<std::string> kinds;
  for (std::uint32_t i = 0; i < operations_.size(); ++i) {
    const Operation& each = operations_[i];
    if (!std::isfinite(each.start_s) || !std::isfinite(each.duration_s) || each.duration_s < 0 ||
        !std::isfinite(each.input_s) || each.input_s < 0) {
      throw UsageError("operation " + std::to_string(i) + " of step " + std::to_string(each.step) +
                       " has no finite start and duration");
    }
    by_step[each.step].push_back(i);
    dp_ranks.insert(each.dp_rank);
    stages.insert(each.stage);
    kinds.insert(std::string(kind_of(each.type)));
  }
  dp_ranks_ = sorted(dp_ranks);
  stages_ = sorted(stages);
  kinds_ = sorted(kinds);
  own_s_.resize(operations_.size());
  delay_s_.resize(operations_.size());
  in_batch_.resize(operations_.size());
  for (const auto& [step, members] : by_step) {
    steps_.push_back(step);
    arranged_.push_back(arrange(members));
    measure(arranged_.back());
  }
  find_ideal();
}

JobSimulation::Step JobSimulation::arrange(const std::vector<std::uint32_t>& members) {
  const Dependencies dependencies = dependencies_of(operations_, members);
  unpaired_ += dependencies.unpaired;
  const std::vector<std::uint32_t> order = order_of(dependencies);
  if (order.size() != dependencies.groups.size()) {
    throw UsageError(
        "the operations of step " + std::to_string(operations_[members.front()].step) +
        " wait for each other in a circle: were its start times recorded on one clock per worker?");
  }
  Step step;
  for (const std::uint32_t group : order) {
    for (const std::uint32_t each : dependencies.groups[group]) {
      in_batch_[members[each]] = dependencies.in_batch[each];
      step.members.push_back(members[each]);
      for (const std::uint32_t earlier : dependencies.needs[each]) step.needs.push_back(members[earlier]);
      step.needs_end.push_back(static_cast<std::uint32_t>(step.needs.size()));
    }
    step.group_end.push_back(static_cast<std::uint32_t>(step.members.size()));
  }
  return step;
}

void JobSimulation::measure(const Step& step) {
  std::size_t begin = 0;
  std::size_t need = 0;
  double first_s = std::numeric_limits<double>::infinity();
  for (const std::uint32_t each : step.members)
    first_s = std::min(first_s, operations_[each].start_s - operations_[each].input_s);
  for (const std::uint32_t end : step.group_end) {
    double last_start_s = -std::numeric_limits<double>::infinity();
    // A batch ends with the last of its transfers, so the earlier end of two is that of this transfer.
    double first_end_s = std::numeric_limits<double>::infinity();
    bool in_batch = false;
    for (std::size_t i = begin; i < end; ++i) {
      in_batch = in_batch || in_batch_[step.members[i]];
      last_start_s = std::max(last_start_s, operations_[step.members[i]].start_s);
      first_end_s = std::min(first_end_s, operations_[step.members[i]].end_s());
    }
    for (std::size_t i = begin; i < end; ++i) {
      const Operation& each = operations_[step.members[i]];
      const bool never_launched = end - begin == 1 && is_between_stages(each.type);
      const double end_s = in_batch ? first_end_s : each.end_s();
      own_s_[step.members[i]] = never_launched ? 0 : std::max(0.0, end_s - last_start_s);
      double ready_s = first_s;
      for (; need < step.needs_end[i]; ++need)
        ready_s = std::max(ready_s, operations_[step.needs[need]].end_s());
      delay_s_[step.members[i]] = std::max(0.0, each.start_s - ready_s);
    }
    begin = end;
  }
}

void JobSimulation::find_ideal() {
  std::array<std::vector<double>, kOperationTypes> by_type;
  for (const Step& step : arranged_) {
    std::size_t begin = 0;
    for (const std::uint32_t end : step.group_end) {
      for (std::size_t i = begin; i < end; ++i) {
        const Type type = operations_[step.members[i]].type;
        if (end - begin == 1 && is_between_stages(type)) continue;
        by_type[static_cast<std::size_t>(type)].push_back(own_s_[step.members[i]]);
      }
      begin = end;
    }
  }
  for (std::size_t type = 0; type < kOperationTypes; ++type) {
    if (by_type[type].empty()) continue;
    ideal_s_[type] = is_computed(static_cast<Type>(type)) ? mean(by_type[type]) : median(by_type[type]);
  }
}

std::vector<double> JobSimulation::recorded_s() const {
  std::vector<double> result;
  for (const Step& step : arranged_) {
    double first_s = std::numeric_limits<double>::infinity();
    double last_s = -first_s;
    for (const std::uint32_t each : step.members) {
      first_s = std::min(first_s, operations_[each].start_s - operations_[each].input_s);
      last_s = std::max(last_s, operations_[each].end_s());
    }
    result.push_back(last_s - first_s);
  }
  return result;
}

double JobSimulation::delay_s(std::uint32_t operation, Delays delays) const {
  if (delays == Delays::none) return 0;
  const double input_s = delays == Delays::without_input ? operations_[operation].input_s : 0;
  return std::max(0.0, delay_s_[operation] - input_s);
}

std::vector<double> JobSimulation::step_s(const Selection& kept, Delays delays) const {
  std::vector<double> cost_s = own_s_;
  for (std::size_t i = 0; i < cost_s.size(); ++i) {
    if (!kept.contains(operations_[i])) cost_s[i] = ideal_s_[static_cast<std::size_t>(operations_[i].type)];
  }
  std::vector<double> end_s(operations_.size());
  std::vector<double> result;
  for (const Step& step : arranged_) {
    std::size_t begin = 0;
    std::size_t need = 0;
    double last_s = 0;
    for (const std::uint32_t end : step.group_end) {
      double all_here_s = 0;
      for (std::size_t i = begin; i < end; ++i) {
        double start_s = 0;
        for (; need < step.needs_end[i]; ++need) start_s = std::max(start_s, end_s[step.needs[need]]);
        start_s += delay_s(step.members[i], delays);
        all_here_s = std::max(all_here_s, start_s);
      }
      const bool alone = end - begin == 1;
      for (std::size_t i = begin; i < end; ++i) {
        const std::uint32_t each = step.members[i];
        const bool never_launched = alone && is_between_stages(operations_[each].type);
        end_s[each] = all_here_s + (never_launched ? 0 : cost_s[each]);
        last_s = std::max(last_s, end_s[each]);
      }
      begin = end;
    }
    result.push_back(last_s);
  }
  return result;
}

}  // namespace headrace::analysis::job
