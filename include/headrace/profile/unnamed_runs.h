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

/// Removes a run folder that holds only what Headrace wrote, and "headrace-runs" once nothing but its
/// .gitignore is left in it. Never throws.
void remove_run_folder(const std::string& run) noexcept;

}  // namespace headrace::profile
