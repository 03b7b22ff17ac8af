// What the text report says of a framework's loader with worker processes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headrace/profile/profile.h"
#include "sections.h"

namespace headrace::report {

/// "workers=4, ordered=False": how the framework's loader is set, defaults left out; "" if nothing is
/// known.
std::string settings_line(const profile::Profile& profile, std::size_t width);

/// One row per worker process, of many the slowest and the fastest; empty if there are fewer than two.
Lines worker_section(const profile::Profile& profile, std::size_t width);

/// Queues of one kind that every worker has (index[0], index[1], ...), more than `most_equal` of them, are
/// one group under a name of its own; every other queue is one alone.
struct QueueGroup {
  std::string name;
  std::vector<std::size_t> members;  ///< places in Profile::queues
};
std::vector<QueueGroup> queue_groups(const std::vector<profile::QueueProfile>& queues,
                                     std::size_t most_equal = 4);

/// The groups as queues: shares and levels are means, counts and waits are sums.
std::vector<profile::QueueProfile> folded(const std::vector<profile::QueueProfile>& queues,
                                          std::size_t most_equal = 4);

/// What handing a batch over takes; "" if it was not recorded.
std::string handoff_sentence(const profile::Profile& profile);

}  // namespace headrace::report
