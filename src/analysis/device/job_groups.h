// What the process groups of a rank are for: the pipeline, data-parallel ranks, embeddings.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "headrace/trace/process_groups.h"

namespace headrace::analysis::device {

struct JobGroups {
  enum class Use : std::uint8_t { other, data, stages, embedding };
  std::map<std::string, Use, std::less<>> by_name;
  std::vector<std::int64_t> pipeline;  ///< its ranks, one a stage; empty if unknown
  std::int32_t stage = 0;
  std::int32_t dp_rank = 0;
};

/// As the groups are described.
JobGroups job_groups(const std::vector<trace::ProcessGroup>& groups, std::int64_t rank);

/// As their ranks lie in `stages`, the ranks of each stage: a group within one stage is data-parallel unless it is
/// described otherwise. The pipeline is the group with one rank of each stage; without one, and if the stages have
/// equally many ranks, it is the n-th rank of each stage. As the other function says if `rank` is in no stage.
JobGroups job_groups(const std::vector<trace::ProcessGroup>& groups, std::int64_t rank,
                     const std::vector<std::vector<std::int64_t>>& stages);

}  // namespace headrace::analysis::device
