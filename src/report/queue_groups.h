// Queues that each worker of a loader has, as one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::report {

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

}  // namespace headrace::report
