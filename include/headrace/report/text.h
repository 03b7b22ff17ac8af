// The report that a person reads: the verdict, what to do, where a batch's time goes, the evidence. In this
// order.
//
//     std::cout << report::to_text(profile, analysis::diagnose(profile), {.width = 100, .color = true});
#pragma once

#include <string>

#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::report {

struct TextOptions {
  int width = 100;     ///< columns; no line is longer (at least 40 are used)
  bool color = false;  ///< ANSI colours, for terminals
};

/// UTF-8. Sentences wrap at `width`; tables drop their least important columns instead. Names are printed
/// without control characters and shortened. A figure that is not known is "-". Thread-safe; never fails.
std::string to_text(const profile::Profile& profile, const analysis::Diagnosis& diagnosis,
                    TextOptions options = {});

}  // namespace headrace::report
