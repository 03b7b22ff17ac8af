// Which files MindSpore's profiler left in a folder, by rank.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace headrace::loader_files {

enum class FileKind : std::uint8_t {
  pipeline_profiling,
  pipeline_table,
  pipeline_summary,
  pipeline_summary_table,
  device_queue,
  dataset_iterator,
  getnext_ascend,
  getnext_gpu,
  cpu,
  step_trace,
  step_points,
  aicore_types,
  aicore_details,
  aicpu,
  framework,
  flops,
  flops_summary,
  gpu_types,
  gpu_details,
  gpu_activity,
  cpu_types,
  cpu_details,
  memory_summary,
  memory_details,
  timeline,
  cluster,
  collectives,
  dataset,
  host_info,
  getnext_raw,
};

struct RankFolder {
  int rank = 0;                           ///< the files' suffix: rank, in old versions device
  std::map<FileKind, std::string> paths;  ///< one file of each kind
  std::vector<std::string> raw_getnext;   ///< all files of the kind getnext_raw: the profiler cuts them

  /// "" where there is none.
  std::string path(FileKind kind) const;
};

struct ProfilerFolder {
  std::vector<RankFolder> ranks;  ///< lowest first; empty: no such file
  std::vector<std::string> notes;

  const RankFolder* rank(int number) const noexcept;
};

/// The files in `folder`, else in its `profiler/`, else in its subfolders and their `profiler/`. Only looks at
/// names; changes nothing. Error for a folder that cannot be read.
ProfilerFolder find_profiler_files(const std::string& folder);

/// The names of files, for messages: "looked for MindSpore's pipeline_profiling_<rank>.json, ...".
std::string looked_for();

}  // namespace headrace::loader_files
