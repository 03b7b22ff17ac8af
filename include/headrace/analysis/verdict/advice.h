// From a cause to a number: the value of a parameter, and what it buys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/analysis/simulate/predictor.h"
#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Workers that are tried at most, and batches that are kept ready.
inline constexpr int kMaxAdvisedWorkers = 64;
inline constexpr int kMaxBuffered = 64;

/// The step now and the predicted one, as an Advice without parameter. Nothing is filled in where the
/// predictor abstains.
Advice with_prediction(Advice advice, double step_s, const Prediction& prediction);

/// Leaves out what is predicted to shorten the step by less than 5 %: that is within what runs differ by.
void drop_what_does_not_gain(std::vector<Advice>& advice, double step_s);

/// Stands in the text of a change that could not be predicted, before the reason.
inline constexpr std::string_view kGainUnknown = "; how much that gains is unknown: ";

/// Fewest workers of operator `index` after which it is no longer the limit; further rows: one worker more
/// than now. Empty if no number of workers gains more than the interval of its own prediction.
std::vector<Advice> advise_workers(const Predictor& predictor, int index);

/// The threads of operator `index` as processes: as many as gain something, no more than there are cores. Without
/// figures where that is not predicted.
Advice advise_processes(const Predictor& predictor, int index);

/// Capacities of the queues between operator `index` and the sink, raised together; every row carries the
/// prediction for all of them.
std::vector<Advice> advise_capacity(const Predictor& predictor, int index);

/// The name of what moves operator `op` to processes: "<name>.executor", in a framework's loader its own
/// parameter for that stage; "" if it has none.
std::string executor_parameter(const profile::Profile& profile, int op);

/// Values of that parameter for threads and for processes: "thread" and "process", or False and True.
struct ExecutorValues {
  std::string threads;
  ParameterValue from;
  ParameterValue to;
};
ExecutorValues executor_values(const profile::Profile& profile, const std::string& parameter);

/// The framework runs it once: it says so, or it is a source (or generator, shuffle, sampler) in one thread.
bool cannot_be_multiplied(const profile::OperatorProfile& op);

/// "2" for 2.0, "0.5" for 0.5.
std::string as_written(double value);
using profile::as_written;

/// Indices of the queues from operator `index` to the sink, upstream first.
std::vector<int> queues_after(const profile::Profile& profile, int index);

}  // namespace headrace::analysis
