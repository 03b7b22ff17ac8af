// headrace-runs/<date>-<time>-<pid>: runs in the default folder.
#pragma once

#include <string>

namespace headrace::profile {

/// Name of the default folder of runs.
inline constexpr const char* kDefaultRuns = "headrace-runs";
/// Number of unnamed runs to keep.
inline constexpr int kUnnamedRunsKept = 20;

/// True for <date>-<time>-<pid>.
bool is_unnamed_run(const std::string& folder_name);

/// Called before the folder `run` is made. If that is in a folder "headrace-runs": puts a .gitignore
/// there, and removes the oldest unnamed runs beyond the newest 20. A run that still records, or whose folder
/// holds anything that Headrace did not write, stays. Never throws.
void tidy_unnamed_runs(const std::string& run) noexcept;

/// Removes a run folder that holds only what Headrace wrote, and "headrace-runs" once nothing but its
/// .gitignore is left in it. Never throws.
void remove_run_folder(const std::string& run) noexcept;

}  // namespace headrace::profile
