// Two recorded runs of the size that the bars name: 8 operators, 16 workers, times that vary.
#pragma once

#include "headrace/profile/profile.h"

namespace headrace::bench {

/// 8 operators in 2 threads each, a queue behind each of them; the fourth limits.
profile::Profile recorded_pipeline();

/// A DataLoader of 16 workers, each of which runs all 8 operators.
profile::Profile recorded_loader();

}  // namespace headrace::bench
