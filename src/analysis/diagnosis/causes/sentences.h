// What most causes need to say it.
#pragma once

#include <algorithm>
#include <string>

#include "../numbers.h"
#include "headrace/analysis/diagnosis/advice.h"
#include "headrace/analysis/diagnosis/causes/cause.h"
#include "headrace/analysis/diagnosis/removal.h"
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

inline void add_removal(const Removal& removal, const std::string& name, Evidence& evidence) {
  if (!removal.step_s) return;
  evidence.says += "; simulated without " + name + ", a step takes " + duration(*removal.step_s);
  evidence.figures["step_without_s"] = *removal.step_s;
}

/// `advice` with the step if the candidate's items took less by that share of their time.
inline Advice with_shorter_items(const Case& facts, Advice advice, double share) {
  const double factor = 1 - std::min(share, 0.99);
  const Prediction then = facts.predictor.predict({{Change::Kind::kService, facts.candidate, 1, factor}});
  return with_prediction(std::move(advice), facts.gate.step_s, then);
}

}  // namespace headrace::analysis
