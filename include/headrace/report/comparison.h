// Two runs side by side, for people and for programs.
//
//     std::cout << report::to_text(analysis::compare(before, after), {.width = 100});
#pragma once

#include <string>

#include "headrace/analysis/comparison/comparison.h"
#include "headrace/report/text.h"

namespace headrace::report {

/// The changes, their effect on the step, then the figures. As `to_text` of a report; thread-safe, never fails.
std::string to_text(const analysis::Comparison& comparison, TextOptions options = {});

/// The members of `Comparison` by their names; an interval without an end has null there. `indent` < 0: one line.
std::string to_json(const analysis::Comparison& comparison, int indent = 2);

/// The content of a page for templates: headline, sentences, tables, and the figures of `to_json`.
std::string page_json(const analysis::Comparison& comparison);

/// "B takes 12 % longer a step: 41.2 ms -> 46.1 ms"; what the text begins with.
std::string headline_of(const analysis::Comparison& comparison);

}  // namespace headrace::report
