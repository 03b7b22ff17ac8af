// What the text and the page of a comparison both say.
#pragma once

#include <string>
#include <vector>

#include "headrace/analysis/comparison/comparison.h"

namespace headrace::report {

struct ComparisonTable {
  std::string title;
  std::vector<std::string> columns;  ///< the first one is the name
  std::vector<std::vector<std::string>> rows;
};

/// One or two sentences below the headline: where the difference is, and which operators changed.
std::string explanation(const analysis::Comparison& comparison);

/// What each side's verdict was, and what makes the comparison unsure.
std::vector<std::string> remarks(const analysis::Comparison& comparison);

/// Settings that differ, the step, the operators; those with rows.
std::vector<ComparisonTable> tables(const analysis::Comparison& comparison);

}  // namespace headrace::report
