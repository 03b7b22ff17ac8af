// Segments that processes of this machine still record into, as a run folder lists them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/profile/run_folder.h"

namespace headrace::profile {

/// rank<r>[.n].hrseg -> r; -1 for any other name.
int rank_of_file(const std::string& name);

/// Fills in what the live segment says. False if there is none at `live_path`, or it does not have this
/// identity (0: any).
bool take_live(RunSegment& segment, const std::string& live_path, std::uint64_t identity);

/// Adds the live segments of the folder `run` that no pointer in it names, because the disk was full.
void add_without_pointer(const std::string& run, std::vector<RunSegment>& segments);

}  // namespace headrace::profile
