// Sentences that most causes need.
#pragma once

#include <algorithm>
#include <string>

#include "../../read/numbers.h"
#include "headrace/analysis/verdict/advice.h"
#include "headrace/analysis/verdict/causes/cause.h"
#include "headrace/analysis/words.h"

namespace headrace::analysis {

inline Evidence cause_evidence(std::string says, std::map<std::string, double> figures) {
  return Evidence{Rule::cause, std::move(says), std::move(figures)};
}

/// A cure that is not a parameter.
inline Advice in_words(std::string text) {
  Advice advice;
  advice.text = std::move(text);
  return advice;
}

/// Adds the simulation without the operator.
inline void add_absence(const Case& facts, int op, Evidence& evidence) {
  if (!facts.interventions.gains(op)) return;
  const double step_s = facts.interventions.without_s[static_cast<std::size_t>(op)];
  evidence.says += "; simulated without " + facts.profile.operators[static_cast<std::size_t>(op)].name +
                   ", a step takes " + duration(step_s);
  evidence.figures["step_without_s"] = step_s;
}

/// Adds simulations with more workers of the candidate, and with what they lack beside them.
inline void add_more_workers(const Case& facts, const char* with, double with_s, Evidence& evidence) {
  if (!facts.more.known()) return;
  evidence.says += "; simulated with " + std::to_string(MoreWorkers::kTimes) +
                   " times the workers, a step takes " + duration(facts.more.as_is_s) + ", and " +
                   duration(with_s) + " " + with;
  evidence.figures["step_with_more_workers_s"] = facts.more.as_is_s;
}

/// `advice` with the step if the candidate's items took less by that share of their time.
inline Advice with_shorter_items(const Case& facts, Advice advice, double share) {
  const double factor = 1 - std::min(share, 0.99);
  const Prediction then = facts.predictor.predict({{Change::Kind::kService, facts.candidate, 1, factor}});
  return with_prediction(std::move(advice), facts.gate.step_s, then);
}

}  // namespace headrace::analysis
