// Live segments whose process died: their recordings are brought to where they belong.
#pragma once

#include <string>

namespace headrace::profile {

/// Looks after segments whose owners are gone, this user's in shared memory and those in the folder `run`
/// ("": none). One whose run folder still holds its pointer becomes a copy there; one whose run folder is
/// gone, or that never had one (nothing was wrapped), is removed; one that can be brought nowhere (a full
/// disk, a folder that may not be written) stays a day. Nothing outside these folders is touched, and no file
/// is followed or believed that is not this user's own (PrivateFolder, LivePointer).
///
/// Called whenever a session opens; reading never does this. Takes microseconds per segment that stays. Never
/// throws.
void collect_orphans(const std::string& run) noexcept;

}  // namespace headrace::profile
