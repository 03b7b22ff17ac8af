// A folder of another profiler, as the profile of one of its ranks: read, with the other ranks beside it and
// with what other tools say of the same files.
#pragma once

#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Ranks with files in the folder (or in its `profiler/`, or in its subfolders), lowest first; empty for a
/// folder of something else. Error for one that cannot be read. Only looks at names.
std::vector<int> ranks_in_folder(const std::string& folder);

/// Reads the files of `rank`; changes nothing. Error where the folder has none of them, FormatError where none
/// can be read. What only some of them lack or garble is in the profile's notes. Thread-safe.
profile::Profile profile_of_folder(const std::string& folder, int rank);

/// The names of the files that are looked for.
std::string files_looked_for();

}  // namespace headrace::analysis
