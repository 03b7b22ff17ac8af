// What was set while the program trained, in words, for text and page.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::report {

/// "workers 0 -> 4 (step 480): kept, 34.6 ms -> 10.1 ms a step (0.29 to 0.31 times as long), predicted 9.8 ms".
std::string change_sentence(const profile::ParameterChange& change);

/// Rows of text, headed, no wider than `width`; empty where nothing was set.
std::vector<std::string> autopilot_section(const profile::Profile& profile, std::size_t width);

}  // namespace headrace::report
