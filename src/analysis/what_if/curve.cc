#include "headrace/analysis/what_if/curve.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/read/plausible.h"
#include "headrace/analysis/verdict/parameters.h"

namespace headrace::analysis {
namespace {

constexpr int kFewestShown = 4;
constexpr std::size_t kMaxPoints = 12;

const Parameter* asked_about(const std::vector<Parameter>& parameters, const profile::Profile& profile,
                             const Diagnosis& diagnosis) {
  const auto find = [&](auto&& fits) -> const Parameter* {
    const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& each) {
      return each.kind == Change::Kind::kWorkers && each.value == Parameter::Value::kWhole && fits(each);
    });
    return found == parameters.end() ? nullptr : &*found;
  };
  if (!diagnosis.advice.empty()) {
    const std::string& advised = diagnosis.advice.front().parameter;
    if (const Parameter* found = find([&](const Parameter& each) { return each.name == advised; }))
      return found;
  }
  if (diagnosis.op) {
    const Parameter* found = find([&](const Parameter& each) {
      return each.index >= 0 && static_cast<std::size_t>(each.index) < profile.operators.size() &&
             profile.operators[static_cast<std::size_t>(each.index)].name == *diagnosis.op;
    });
    if (found != nullptr) return found;
  }
  return loader_of(profile) ? find([](const Parameter&) { return true; }) : nullptr;
}

/// The first advice's value of `parameter`, or today's number.
int advised(const Parameter& parameter, const Diagnosis& diagnosis, int now) {
  if (diagnosis.advice.empty() || diagnosis.advice.front().parameter != parameter.name) return now;
  return std::atoi(profile::as_written(diagnosis.advice.front().to).c_str());
}

}  // namespace

StepCurve step_curve(const profile::Profile& recorded, const Diagnosis& diagnosis) {
  const profile::Profile profile = plausible(recorded);
  return step_curve(*predictor_for(profile), diagnosis);
}

StepCurve step_curve(const Predictor& predictor, const Diagnosis& diagnosis) {
  StepCurve curve;
  const profile::Profile& profile = predictor.profile();
  const std::vector<Parameter> parameters = parameters_of(profile);
  const Parameter* asked = asked_about(parameters, profile, diagnosis);
  if (asked == nullptr) return curve;
  curve.now = std::atoi(asked->now.c_str());
  const int better = advised(*asked, diagnosis, curve.now);
  const double most = std::min(asked->max, std::max<double>(kFewestShown, 2.0 * std::max(curve.now, better)));
  std::set<int> values{curve.now, better};
  const auto try_it = [&](int value) {
    if (value >= asked->min && value <= most && values.size() < kMaxPoints) values.insert(value);
  };
  try_it(0);
  // 1, 2, 3, 4, 6, 8, 12, ...
  for (int each = 1; each <= most && values.size() < kMaxPoints; each *= 2) {
    try_it(each);
    if (each > 1) try_it(each + each / 2);
  }
  for (int value : values) {
    if (value < asked->min || value > asked->max) continue;
    std::vector<Change> changes;
    for (const Parameter& each : parameters) {
      if (each.name == asked->name) changes.push_back(change_to(each, std::to_string(value)));
    }
    Prediction then = predictor.predict(changes);
    if (value == curve.now) then.step_s = then.low_s = then.high_s = profile.sink.step_s;  // measured
    if (then.known) curve.points.push_back({value, std::move(then)});
  }
  if (curve.points.size() < 2) return {};
  curve.parameter = asked->name;
  return curve;
}

}  // namespace headrace::analysis
