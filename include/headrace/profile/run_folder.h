// The folder of a run: its contents, and where its live segments are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace::profile {

inline constexpr std::string_view kSegmentSuffix = ".hrseg";
/// Suffix of a live segment in the run folder, after its copy's name.
inline constexpr std::string_view kLiveSegmentSuffix = ".live-segment";
/// Beside a live segment in shared memory: the path of its copy.
inline constexpr std::string_view kHomeSuffix = ".home";

/// One recorded segment of a run.
struct RunSegment {
  std::string path;       ///< to read: the live segment while there is one, else the copy in the run folder
  std::string copy_path;  ///< where its copy lies or will lie
  int rank = 0;
  bool live = false;     ///< read from the live segment
  bool running = false;  ///< its owner still runs
};

/// Creates the folder (0700, with its parents), or takes one of the same user. Returns "" or the reason why
/// not. Below a folder "headrace-runs": keeps that out of version control, and only the newest unnamed runs
/// (unnamed_runs.h).
std::string make_run_folder(const std::string& run);

/// The folder of this user's live segments in shared memory.
std::string shared_memory_folder();
/// A path for a new segment there; "" if there is none.
std::string shared_memory_path();

/// Name of the copy of a new segment: rank<r>.hrseg, or rank<r>.2.hrseg, ... where an earlier one has that
/// name.
std::string free_copy_path(const std::string& run, int rank);
/// True if the file name is one that `free_copy_path` gives.
bool is_copy_path(const std::string& path);
/// True for the name under which a copy is written until it is complete (OutputFile).
bool is_half_copy(const std::string& name);
/// The copies that are, or will be, in the folder, by name.
std::vector<std::string> copy_paths(const std::string& run);

/// Keeps beside a live segment in shared memory where its copy belongs ("": removes that).
void write_home(const std::string& live_path, const std::string& copy_path);

/// The segments of a run, by rank, newest last. Throws Error if `run` is not a run folder. Changes nothing.
/// The thread that found a live segment can read it by its path when it has been brought home since, too.
std::vector<RunSegment> find_segments(const std::string& run);

/// RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK, else 0.
int default_rank();

/// A line for each recording of the run of which there is nothing to read, and why.
std::vector<std::string> missing_recordings(const std::string& run);

}  // namespace headrace::profile
