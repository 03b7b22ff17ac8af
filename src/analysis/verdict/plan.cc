#include "headrace/analysis/verdict/plan.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "../read/numbers.h"
#include "headrace/analysis/read/demand.h"
#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/verdict/advice.h"
#include "headrace/analysis/verdict/loader_advice.h"
#include "headrace/analysis/verdict/parameters.h"
#include "headrace/analysis/words.h"
#include "search.h"

namespace headrace::analysis {
namespace {

constexpr std::size_t kLongestPlan = 3;
/// Less is within what a prediction is off by.
constexpr double kGains = 1.1;

struct Candidate {
  const Parameter* parameter = nullptr;
  Change change;
  Prediction then;
};

/// Values worth a try, smallest first: a few more workers, buffers twice and four times as long.
std::vector<int> values_of(const profile::Profile& profile, const Parameter& parameter) {
  const double now = std::stod(parameter.now);
  std::vector<int> values;
  const auto add = [&](double value, double most) {
    if (value > now && value <= std::min(most, parameter.max)) values.push_back(static_cast<int>(value));
  };
  switch (parameter.kind) {
    case Change::Kind::kWorkers: {
      const profile::OperatorProfile& op = profile.operators[static_cast<std::size_t>(parameter.index)];
      const bool computes = cpu_bound_share(op) > kMostOf && profile.host.cores > 0;
      const double most = computes ? std::min(kMaxAdvisedWorkers, profile.host.cores) : kMaxAdvisedWorkers;
      for (double more : {1, 2, 3, 4, 6, 8}) add(now + more, most);
      break;
    }
    case Change::Kind::kCapacity:
    case Change::Kind::kWindow:
      for (double times : {2, 4, 8, 16})
        add(std::max(1.0, now) * times, std::max<double>(kMaxBuffered, 4 * now));
      break;
    default:
      break;
  }
  return values;
}

/// A stage that keeps a thread of its own by its nature has no second one.
bool can_be_tried(const profile::Profile& profile, const Parameter& parameter) {
  switch (parameter.kind) {
    case Change::Kind::kWorkers:
      return !cannot_be_multiplied(profile.operators[static_cast<std::size_t>(parameter.index)]);
    case Change::Kind::kCapacity:
    case Change::Kind::kWindow:
      return parameter.now != "0";
    default:
      return false;
  }
}

std::string sentence_of(const profile::Profile& profile, const Parameter& parameter, int to) {
  const std::optional<Loader> loader = loader_of(profile);
  switch (parameter.kind) {
    case Change::Kind::kWorkers:
      return loader ? workers_sentence(*loader, to)
                    : "run " + profile.operators[static_cast<std::size_t>(parameter.index)].name + " with " +
                          counted(to, "worker") + " instead of " + parameter.now;
    case Change::Kind::kCapacity:
      return "make " + in_a_sentence(profile.queues[static_cast<std::size_t>(parameter.index)]) + " hold " +
             as_written(to) + " " + profile.queues[static_cast<std::size_t>(parameter.index)].unit;
    default:
      return "keep " + as_written(to) + " batches ready per worker";
  }
}

class Search {
 public:
  explicit Search(const Predictor& predictor)
      : profile_(predictor.profile()), predictor_(predictor), parameters_(parameters_of(profile_)) {
    std::erase_if(parameters_, [&](const Parameter& each) { return !can_be_tried(profile_, each); });
  }

  /// The change that shortens the step most on top of `base`, at its smallest sufficient value.
  std::optional<Candidate> next(const std::vector<Change>& base, double step_s) const {
    std::optional<Candidate> best;
    for (const Parameter& parameter : parameters_) {
      std::optional<Candidate> here = best_value(parameter, base);
      if (here && (!best || !as_short(best->then.step_s, here->then.step_s))) best = std::move(here);
    }
    const bool gains = best && step_s >= kGains * best->then.step_s;
    return gains ? best : std::nullopt;
  }

 private:
  std::optional<Candidate> best_value(const Parameter& parameter, const std::vector<Change>& base) const {
    const bool is_changed = std::any_of(base.begin(), base.end(), [&](const Change& each) {
      return each.kind == parameter.kind && each.index == parameter.index;
    });
    if (is_changed) return std::nullopt;
    std::optional<Choice> found = cheapest(predictor_, values_of(profile_, parameter), [&](int value) {
      std::vector<Change> changes = base;
      changes.push_back({parameter.kind, parameter.index, value, 1});
      return changes;
    });
    if (!found) return std::nullopt;
    return Candidate{&parameter, {parameter.kind, parameter.index, found->value, 1}, std::move(found->then)};
  }

  const profile::Profile& profile_;
  const Predictor& predictor_;
  std::vector<Parameter> parameters_;
};

}  // namespace

std::vector<Advice> plan_after(const Predictor& predictor, const std::vector<Advice>& base) {
  const profile::Profile& profile = predictor.profile();
  std::vector<Change> changes;
  std::vector<std::string> after;
  double step_s = profile.sink.step_s;
  std::string limit;
  for (const Advice& advice : base) {
    changes.insert(changes.end(), advice.changes.begin(), advice.changes.end());
    after.push_back(advice.parameter + "=" + as_written(advice.to));
    step_s = advice.predicted_step_s.value_or(step_s);
    limit = advice.then_limit;
  }
  std::vector<Advice> plan;
  if (profile.operators.size() > kMaxOperators) return plan;
  const Search search(predictor);
  while (plan.size() < kLongestPlan && limit != "sink" && limit != "cpu") {
    const std::optional<Candidate> found = search.next(changes, step_s);
    if (!found) break;
    Advice advice;
    advice.parameter = found->parameter->name;
    advice.from = static_cast<std::int64_t>(std::stod(found->parameter->now));
    advice.to = found->change.to;
    advice.text =
        (after.empty() ? "" : "after that, ") + sentence_of(profile, *found->parameter, found->change.to);
    changes.push_back(found->change);
    advice.changes = changes;
    advice.after = after;
    plan.push_back(with_prediction(std::move(advice), profile.sink.step_s, found->then));
    after.push_back(plan.back().parameter + "=" + as_written(plan.back().to));
    step_s = found->then.step_s;
    limit = found->then.limit;
  }
  return plan;
}

}  // namespace headrace::analysis
