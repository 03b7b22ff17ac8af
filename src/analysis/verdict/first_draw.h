// The sampler's part of the start of each epoch.
#pragma once

#include <string>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Time of a sampler before the first batch of an epoch, if it makes the whole order then.
struct FirstDraw {
  std::string sampler;
  double seconds = 0;  ///< in one epoch
};

/// Whether a sampler's first draws are half of `startup_s` of all epochs, or more. No sampler: they are not.
FirstDraw first_draw_of(const profile::Profile& profile, double startup_s);

/// Advice against it.
std::string cure_of(const FirstDraw& draw);

}  // namespace headrace::analysis
