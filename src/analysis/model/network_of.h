// The network of each kind of recorded loader.
#pragma once

#include <cstdint>
#include <vector>

#include "cycle_works.h"
#include "headrace/analysis/model/network.h"
#include "headrace/analysis/read/loader.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Threads (or processes) and bounded queues. See make_network().
bool network_of_queues(const profile::Profile& profile, const std::vector<Change>& changes, bool ordered,
                       std::uint64_t seed, Network& network);
/// Workers that make whole batches ahead, in a window that is dealt out to them.
bool network_of_window(const profile::Profile& profile, const Loader& loader,
                       const std::vector<Change>& changes, std::uint64_t seed, Network& network);

}  // namespace headrace::analysis
