// Profiles that a report is made of.
#pragma once

#include "headrace/profile/profile.h"

namespace headrace::report {

/// decode is the limit: 40 ms a step against a training step of 10.
profile::Profile decode_limits();

/// The same line with a decode that keeps up.
profile::Profile healthy();

/// The limit of decode_limits in a DataLoader of `workers` processes.
profile::Profile in_workers(int workers);

}  // namespace headrace::report
