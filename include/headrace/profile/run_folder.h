// The folder of a run: what lies in it and where its live segments are.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace headrace::profile {

/// One recorded segment of a run.
struct RunSegment {
  std::string path;       ///< to read: the live segment while there is one, else the copy in the run folder
  std::string copy_path;  ///< where its copy lies or will lie
  int rank = 0;
  bool live = false;     ///< read from the live segment
  bool running = false;  ///< its owner still runs
};

/// Creates the folder (0700, with its parents). Returns "" or the reason why not.
std::string make_run_folder(const std::string& run);

/// A path for a new segment outside the run folder, in shared memory; "" where there is none.
std::string shared_memory_path();

/// Name of the copy of a new segment: rank<r>.hrseg, or rank<r>.2.hrseg, ... where an earlier one has that
/// name.
std::string free_copy_path(const std::string& run, int rank);

/// Leaves a note beside the copy that says where the live segment is; removes it.
void write_live_pointer(const std::string& copy_path, const std::string& live_path);
void remove_live_pointer(const std::string& copy_path);
/// What a live segment keeps beside it to find its run, where the run's own pointer is not there any more.
void remove_home(const std::string& live_path);

/// Looks after live segments in shared memory whose processes died: lays them into their run folders; removes
/// those that never had one (nothing was wrapped in them). A few at a time; called whenever a session opens.
void harvest_leftovers();

/// The segments of a run, by rank, newest last. Throws Error where `run` is no run folder.
/// A live segment whose owner is dead is laid into the run folder first (nothing that was recorded is lost).
std::vector<RunSegment> find_segments(const std::string& run);

}  // namespace headrace::profile
