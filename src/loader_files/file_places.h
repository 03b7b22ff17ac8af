// Where the operators and queues of the files are in the profile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/loader_files/rank_files.h"

namespace headrace::loader_files {

struct FilePlaces {
  std::vector<int> in_profile;  ///< of each operator of the file; -1: not shown
  std::vector<bool> inlined;    ///< of each operator of the profile: it runs inside another one
  std::vector<int>
      source_of_queue;  ///< place in the file of the operator whose samples a queue has; -1: none
  int feeder = -1;      ///< the operator that feeds the device

  bool is_inlined(int place) const { return inlined[static_cast<std::size_t>(place)]; }
  /// Place in the file of an operator of the profile; behind the last one for an operator that no file names.
  std::size_t in_file(int place) const {
    return static_cast<std::size_t>(std::find(in_profile.begin(), in_profile.end(), place) -
                                    in_profile.begin());
  }
  /// The samples of a queue of the profile; null where it has none.
  const std::vector<std::int32_t>* levels(const RankFiles& files, std::size_t queue) const {
    const int at = source_of_queue[queue];
    return at < 0 ? nullptr : &files.pipeline->operators[static_cast<std::size_t>(at)].queue->levels;
  }
};

}  // namespace headrace::loader_files
