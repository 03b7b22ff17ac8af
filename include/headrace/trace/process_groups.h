// The groups in which the ranks of a job communicate, as a trace or a profile names them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/trace/ascend/profile_folder.h"
#include "headrace/trace/reader.h"

namespace headrace::trace {

struct ProcessGroup {
  std::string name;         ///< "0", or the hash of an Ascend profile: what the events call it
  std::string description;  ///< "default_pg", "mesh_pp", "pp": what it is for; may be empty
  /// In the order of the group, so the index of a rank is its rank in the group. Empty if the file does not say.
  std::vector<std::int64_t> ranks;
};

/// `pg_config` of a trace's `distributedInfo`. A group without ranks that has as many members as the job is the
/// job. Groups of other types than expected are left out; at most 4,096 groups and a million ranks are read.
std::vector<ProcessGroup> process_groups(const TraceFile& file);

/// `parallel_group_info` of an Ascend profile's `profiler_metadata.json`; empty without it.
std::vector<ProcessGroup> process_groups(const ascend::ProfileFolder& profile);

/// Place of a rank among those that share its work in one way.
struct ParallelPlace {
  std::string role;  ///< "pipeline", "tensor", "data", "sequence" or "expert"
  std::int64_t index = 0;
  std::int64_t size = 0;
};

/// Places in groups of two or more ranks that include this one and whose description has a single role ("mesh_pp",
/// "PIPELINE_MODEL_PARALLEL_GROUP", "dp"); the first group of a role counts. In a pipeline, the index is the stage.
std::vector<ParallelPlace> places_of(const std::vector<ProcessGroup>& groups, std::int64_t rank);

/// Ranks of a list as JSON writes it: "[0, 1, 2]". Empty if it is shortened ("[0, 1, ..., 511]") or no list.
std::vector<std::int64_t> ranks_in(std::string_view list);

}  // namespace headrace::trace
