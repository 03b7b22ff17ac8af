// What most causes need to say it.
#pragma once

#include <string>

#include "../numbers.h"
#include "headrace/analysis/diagnosis/advice.h"
#include "headrace/analysis/diagnosis/causes/cause.h"
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

}  // namespace headrace::analysis
