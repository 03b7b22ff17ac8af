#include "headrace/analysis/verdict/parameters.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "../model/limits.h"
#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/verdict/advice.h"
#include "headrace/profile/errors.h"

namespace headrace::analysis {
namespace {

constexpr double kLargestFactor = 1000;

using Kind = Change::Kind;
using Value = Parameter::Value;

void add_loader(const Loader& loader, std::vector<Parameter>& parameters) {
  if (loader.in_workers.empty()) return;
  const auto add = [&](profile::Quantity sets, Kind kind, Value value, int index, const std::string& now,
                       double min, double max) {
    const profile::LoaderParameter* of = loader.parameter(sets);
    if (of == nullptr) return;
    parameters.push_back({of->name, kind, index, value, now, std::max(min, of->min.value_or(min)),
                          std::min(max, of->max.value_or(max)), of->needs_workers});
  };
  add(profile::Quantity::workers, Kind::kWorkers, Value::kWhole, loader.in_workers.front(),
      as_written(loader.workers), 0, kMaxWorkers);
  add(profile::Quantity::window, Kind::kWindow, Value::kWhole, 0, as_written(loader.per_worker), 1,
      kLongestWindow);
  add(profile::Quantity::order, Kind::kOrder, Value::kTrueFalse, 0, loader.ordered ? "True" : "False", 0, 1);
}

void add_operator(const profile::Profile& profile, int index, std::vector<Parameter>& parameters) {
  const profile::OperatorProfile& op = profile.operators[static_cast<std::size_t>(index)];
  if (runs_in_step(profile, index) || op.in_sink) return;
  const profile::Parameter* parameter = parameter_that_sets(op.parameters, profile::Quantity::workers);
  if (profile.model && parameter == nullptr) return;  // fixed by the framework
  const double most = parameter != nullptr
                          ? std::min<double>(kMaxWorkers, parameter->max.value_or(kMaxWorkers))
                          : kMaxWorkers;
  parameters.push_back({parameter != nullptr ? parameter->parameter : op.name + ".workers", Kind::kWorkers,
                        index, Value::kWhole,
                        as_written(parameter != nullptr ? parameter->value : op.workers), 1, most});
  const std::string executor = executor_parameter(profile, index);
  if (op.executor == profile::Executor::thread && !executor.empty()) {
    parameters.push_back({executor, Kind::kProcesses, index, Value::kExecutor,
                          executor_values(profile, executor).threads, static_cast<double>(op.workers),
                          static_cast<double>(op.workers)});
  }
}

void add_pipeline(const profile::Profile& profile, std::vector<Parameter>& parameters) {
  int in_sink = -1;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    if (profile.operators[i].in_sink && in_sink < 0) in_sink = static_cast<int>(i);
    add_operator(profile, static_cast<int>(i), parameters);
  }
  for (std::size_t q = 0; q < profile.queues.size(); ++q) {
    const profile::QueueProfile& queue = profile.queues[q];
    if (profile.model && queue.parameters.empty()) continue;  // fixed by the framework
    parameters.push_back(
        {queue.parameters.empty() ? queue.name + ".capacity" : queue.parameters.front().parameter,
         Kind::kCapacity, static_cast<int>(q), Value::kWhole, as_written(static_cast<double>(queue.capacity)),
         1, kLargestQueue});
  }
  const bool threads = std::any_of(
      profile.operators.begin(), profile.operators.end(),
      [](const profile::OperatorProfile& op) { return op.executor == profile::Executor::thread; });
  if (threads)
    parameters.push_back({"free_threaded", Kind::kFreeThreaded, 0, Value::kTrueFalse, "False", 0, 1});
  if (in_sink >= 0) {
    parameters.push_back({"prefetch", Kind::kPrefetch, in_sink, Value::kWhole, "0", 1, kLargestQueue});
  }
}

/// NAN if the text is not a number.
double number(const std::string& text) {
  double value = NAN;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : NAN;
}

[[noreturn]] void refuse(const Parameter& parameter, const std::string& text, const std::string& expected) {
  throw UsageError(parameter.name + "=" + text + ": expected " + expected + " (it is " + parameter.now + ")");
}

}  // namespace

std::vector<Parameter> parameters_of(const profile::Profile& profile) {
  std::vector<Parameter> parameters;
  if (const std::optional<Loader> loader = loader_of(profile)) {
    add_loader(*loader, parameters);
  } else {
    add_pipeline(profile, parameters);
  }
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    if (profile.operators[i].demand_s <= 0) continue;
    parameters.push_back({profile.operators[i].name + ".speedup", Kind::kService, static_cast<int>(i),
                          Value::kFactor, "1", 1 / kLargestFactor, kLargestFactor});
  }
  return parameters;
}

Change change_to(const Parameter& parameter, const std::string& text) {
  Change change{parameter.kind, parameter.index, 1, 1};
  const double value = number(text);
  switch (parameter.value) {
    case Value::kWhole:
      if (!(value >= parameter.min && value <= parameter.max) || value != std::floor(value)) {
        refuse(parameter, text,
               "a whole number from " + as_written(parameter.min) + " to " + as_written(parameter.max));
      }
      change.to = static_cast<int>(value);
      return change;
    case Value::kFactor:
      if (!(value >= parameter.min && value <= parameter.max)) {
        refuse(parameter, text,
               "a factor from " + as_written(parameter.min) + " to " + as_written(parameter.max) +
                   ", 2 for twice as fast");
      }
      change.factor = 1 / value;
      return change;
    case Value::kTrueFalse:
      if (text != "True" && text != "False") refuse(parameter, text, "True or False");
      change.to = text == "True" ? 1 : 0;
      return change;
    case Value::kExecutor: {
      const std::string process = parameter.now == "False" ? "True" : "process";
      if (text != process && text != parameter.now) refuse(parameter, text, parameter.now + " or " + process);
    }
      if (text == parameter.now) return {Kind::kService, parameter.index, 1, 1};
      change.to = static_cast<int>(parameter.max);
      return change;
  }
  return change;
}

}  // namespace headrace::analysis
