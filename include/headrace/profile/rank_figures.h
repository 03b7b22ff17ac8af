// One rank beside the others of its run.
#pragma once

#include "headrace/profile/profile.h"

namespace headrace::profile {

RankFigures rank_figures(const Profile& profile);

}  // namespace headrace::profile
