// What other programs' use of the CPU takes from this run.
#pragma once

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Foreign CPU of the cores, as far as it and the run together fill them: 0 to 1. Nothing where the run sleeps
/// and is not kept waiting for a core (under 5 % of the cores used, and under 5 % of its workers' time runnable
/// without one): a full machine does not slow a run that needs none of it.
double disturbing_foreign_share(const profile::Host& host) noexcept;

}  // namespace headrace::analysis
