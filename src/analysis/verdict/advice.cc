#include "headrace/analysis/verdict/advice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "../read/numbers.h"
#include "headrace/analysis/read/demand.h"
#include "headrace/analysis/read/remote_reads.h"
#include "headrace/analysis/read/shared_waits.h"
#include "headrace/analysis/read/thresholds.h"
#include "headrace/analysis/verdict/loader_advice.h"
#include "headrace/analysis/words.h"
#include "search.h"

namespace headrace::analysis {
namespace {

/// Sleeping workers are cheap, but a law that was measured at one worker is not believed at fifty.
constexpr int kWorkersWithoutDoubt = 16;
/// A buffer is made this many times as long at most.
constexpr int kLongestBuffer = 32;

/// This run and its neighbours leave no core.
bool cores_taken(const profile::Host& host) {
  return host.cpu_share.value_or(0) + host.foreign_cpu_share.value_or(0) >= CpuThresholds{}.spent;
}

/// A queue whose length the user can change: in a framework's loader those that a parameter sets.
bool can_be_lengthened(const profile::Profile& profile, const profile::QueueProfile& queue) {
  return queue.capacity > 0 && (!profile.model || !queue.parameters.empty());
}

/// Parameter of the workers of `op`: the loader's own, else the operator's, else
/// "<name>.workers".
profile::Parameter parameter_that_widens(const profile::OperatorProfile& op,
                                         const std::optional<Loader>& loader) {
  constexpr auto kWorkers = profile::Quantity::workers;
  if (const profile::LoaderParameter* own = loader ? loader->parameter(kWorkers) : nullptr) {
    // 1 may be the training loop itself.
    const auto* value = std::get_if<std::int64_t>(&own->value);
    const std::int64_t now = std::max<std::int64_t>(loader->workers, value == nullptr ? 0 : *value);
    return {own->name, static_cast<double>(now), own->min, own->max, own->live, kWorkers};
  }
  if (const profile::Parameter* parameter = parameter_that_sets(op.parameters, kWorkers)) return *parameter;
  return {op.name + ".workers", static_cast<double>(op.workers), {}, {}, false, kWorkers};
}

}  // namespace

void drop_what_does_not_gain(std::vector<Advice>& advice, double step_s) {
  std::erase_if(advice, [step_s](const Advice& each) {
    return each.predicted_step_s && !is_gain(step_s, *each.predicted_step_s);
  });
}

std::string as_written(double value) {
  char text[48];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

std::string executor_parameter(const profile::Profile& profile, int op) {
  if (!profile.model) return profile.operators[static_cast<std::size_t>(op)].name + ".executor";
  const profile::LoaderModel& model = *profile.model;
  for (const profile::LoaderParameter& each : model.parameters) {
    if (each.sets != profile::Quantity::executor || each.stage < 0) continue;
    if (contains(model.stages[static_cast<std::size_t>(each.stage)].operators, op)) return each.name;
  }
  return "";
}

ExecutorValues executor_values(const profile::Profile& profile, const std::string& parameter) {
  const profile::LoaderParameter* found =
      profile.model ? profile::parameter_named(*profile.model, parameter) : nullptr;
  if (found != nullptr && std::holds_alternative<bool>(found->value)) return {"False", false, true};
  return {"thread", "thread", "process"};
}

bool cannot_be_multiplied(const profile::OperatorProfile& op) {
  if (op.kind == profile::OperatorKind::sampler) return true;
  const profile::Parameter* parameter = parameter_that_sets(op.parameters, profile::Quantity::workers);
  if (parameter != nullptr) return parameter->max && *parameter->max <= 1;
  using enum profile::OperatorKind;
  constexpr std::array kSerial = {source, generator, shuffle, filter, batch, transfer};
  return op.workers == 1 && !op.in_sink &&
         std::find(kSerial.begin(), kSerial.end(), op.kind.known()) != kSerial.end();
}

std::vector<int> queues_after(const profile::Profile& profile, int index) {
  std::vector<int> path;
  while (path.size() < profile.queues.size()) {
    const auto queue = std::find_if(
        profile.queues.begin(), profile.queues.end(),
        [index](const profile::QueueProfile& each) { return contains(each.from_operators, index); });
    if (queue == profile.queues.end()) break;
    path.push_back(static_cast<int>(queue - profile.queues.begin()));
    if (queue->to_sink || queue->to_operators.empty()) break;
    index = queue->to_operators.front();
  }
  return path;
}

Advice with_prediction(Advice advice, double step_s, const Prediction& prediction) {
  if (!prediction.known || prediction.step_s <= 0) return advice;
  advice.predicted_step_s = prediction.step_s;
  advice.then_limit = prediction.limit;
  advice.low = prediction.low_s;
  advice.high = prediction.high_s;
  advice.speedup = step_s / prediction.step_s;
  return advice;
}

Advice advise_processes(const Predictor& predictor, int index) {
  const profile::Profile& profile = predictor.profile();
  const std::optional<Choice> found =
      cheapest(predictor, numbers(1, std::max(1, profile.host.cores)),
               [&](int to) { return std::vector<Change>{{Change::Kind::kProcesses, index, to, 1}}; });
  const int processes = found ? found->value : 1;
  Advice advice;
  advice.text = "run " + profile.operators[static_cast<std::size_t>(index)].name + " in " +
                (processes == 1 ? "a process of its own" : as_written(processes) + " processes") +
                " instead of threads";
  advice.parameter = executor_parameter(profile, index);
  const ExecutorValues values = executor_values(profile, advice.parameter);
  advice.from = values.from;
  advice.to = values.to;
  return found ? with_prediction(std::move(advice), profile.sink.step_s, found->then) : advice;
}

std::vector<Advice> advise_workers(const Predictor& predictor, int index) {
  const profile::Profile& profile = predictor.profile();
  std::vector<Advice> rows;
  if (index < 0) return rows;
  const profile::OperatorProfile& op = profile.operators[static_cast<std::size_t>(index)];
  const std::optional<Loader> loader = loader_of(profile);
  const bool is_fixed =
      profile.model && !loader && parameter_that_sets(op.parameters, profile::Quantity::workers) == nullptr;
  if (is_fixed) return rows;  // by the framework
  if (!serves_more_readers(profile, index)) return rows;
  const profile::Parameter widens = parameter_that_widens(op, loader);
  const int now = static_cast<int>(std::min(widens.value, 1e6));
  const double limit = std::min<double>(widens.max.value_or(kMaxAdvisedWorkers), kMaxAdvisedWorkers);

  int most = std::min(static_cast<int>(limit), std::max(kWorkersWithoutDoubt, 8 * now));
  // Processes that compute all the time share the cores; beyond them they only take memory.
  const int cores = profile.host.cores;
  const bool needs_cores = loader ? computes(profile, *loader) : cpu_bound_share(op) > kMostOf;
  if (loader && cores > 0 && needs_cores) most = std::min(most, cores);
  if (most <= now) return rows;
  const auto with = [&](int to) { return std::vector<Change>{{Change::Kind::kWorkers, index, to, 1}}; };
  const std::optional<Choice> enough = cheapest(predictor, numbers(now + 1, most), with);
  const Prediction one_more = predictor.predict(with(now + 1));
  const double step_s = profile.sink.step_s;
  const auto row = [&](int to, const Prediction& then) {
    Advice advice;
    advice.parameter = widens.parameter;
    advice.from = now;
    advice.to = to;
    advice.changes = with(to);
    advice.text =
        loader ? workers_sentence(*loader, to)
               : "run " + op.name + " with " + counted(to, "worker") + " instead of " + as_written(now);
    if (peer_share(op) >= kMostOf) advice.text += "; if what answers serves several at once";
    return with_prediction(std::move(advice), step_s, then);
  };
  if (!enough) {
    // Work that needs a core finds none, so a worker more gains nothing.
    if (needs_cores && cores_taken(profile.host)) return rows;
    // Processes may be predicted all the same if threads share an interpreter lock.
    if (profile.host.gil_share && op.executor == profile::Executor::thread) {
      Advice processes = advise_processes(predictor, index);
      if (processes.predicted_step_s) return {std::move(processes)};
    }
    Advice advice = row(now + 1, one_more);
    advice.text += std::string(kGainUnknown) + one_more.why_not;
    rows.push_back(std::move(advice));
    return rows;
  }
  if (!worth_it(step_s, enough->then)) return rows;
  rows.push_back(row(enough->value, enough->then));
  if (enough->value > now + 1 && worth_it(step_s, one_more)) rows.push_back(row(now + 1, one_more));
  return rows;
}

std::vector<Advice> advise_capacity(const Predictor& predictor, int index) {
  const profile::Profile& profile = predictor.profile();
  std::vector<Advice> rows;
  if (const std::optional<Loader> loader = loader_of(profile)) {
    // Its buffers grow together, by one parameter.
    if (std::optional<Advice> advice = advise_prefetch(*loader, predictor)) {
      rows.push_back(std::move(*advice));
    }
    return rows;
  }
  std::vector<int> path = queues_after(profile, index);
  std::erase_if(
      path, [&](int q) { return !can_be_lengthened(profile, profile.queues[static_cast<std::size_t>(q)]); });
  if (path.empty()) return rows;
  const double step_s = profile.sink.step_s;
  const auto changes = [&](int factor) {
    std::vector<Change> all;
    for (int q : path) {
      const double now = static_cast<double>(profile.queues[static_cast<std::size_t>(q)].capacity);
      const int to = static_cast<int>(std::min<double>(std::max(now * factor, now + factor), 1e6));
      all.push_back({Change::Kind::kCapacity, q, to, 1});
    }
    return all;
  };
  const std::optional<Choice> enough = cheapest(predictor, doubled(2, kLongestBuffer), changes);
  const int factor = enough ? enough->value : 2;
  for (const Change& change : changes(factor)) {
    const profile::QueueProfile& queue = profile.queues[static_cast<std::size_t>(change.index)];
    const profile::Parameter* parameter = queue.parameters.empty() ? nullptr : &queue.parameters.front();
    // One parameter may set several queues.
    const bool is_said =
        parameter != nullptr && std::any_of(rows.begin(), rows.end(), [&](const Advice& each) {
          return each.parameter == parameter->parameter;
        });
    if (is_said) continue;
    Advice advice;
    advice.parameter = parameter != nullptr ? parameter->parameter : queue.name + ".capacity";
    advice.from = queue.capacity;
    advice.to = change.to;
    advice.changes = {change};
    advice.text = "make " + in_a_sentence(queue) + " hold " + as_written(change.to) + " " + queue.unit;
    if (path.size() > 1) advice.text += " (predicted with all queues from here to the training loop)";
    rows.push_back(with_prediction(std::move(advice), step_s, enough ? enough->then : Prediction{}));
  }
  // The queue before the training loop first: it helps most where only one is changed.
  std::reverse(rows.begin(), rows.end());
  return rows;
}

}  // namespace headrace::analysis
