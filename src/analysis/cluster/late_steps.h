// When a rank is late: since which step, how often, and how long the steps are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "step_matrix.h"

namespace headrace::analysis::cluster {

/// The ranks' own time in each step that is normal, as a share of the median over steps; 0.25 to 4.
std::vector<double> step_scale(const StepMatrix& matrix);

/// Makes steps unknown in which a rank seems late but the job's step is closer to that without it: a collective of
/// that rank was not recorded, so its wait counts as its own time. How long a step is beyond its latest rank is known
/// from the steps in which no rank is late; without enough of these nothing changes. `late_from_s`: of a step of
/// usual length; `scale`: as above.
void drop_unconfirmed(StepMatrix& matrix, double late_from_s, std::span<const double> scale);

/// Where the mean changes most: the first position of the second part. 0: it does not, or the part before is a
/// quarter as late or more.
std::size_t change_of(std::span<const double> late);

/// The distance of late steps if at least three distances are alike.
std::optional<std::int64_t> period_of(const std::vector<std::int64_t>& late_steps);

}  // namespace headrace::analysis::cluster
