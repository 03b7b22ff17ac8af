// Copies of segments, which stay when the segment goes.
#pragma once

#include <cstddef>
#include <string>

#include "headrace/profile/segment_image.h"

namespace headrace::profile {

/// True if a file may grow to `bytes`: writing past the limit (`ulimit -f`) would be a SIGXFSZ, which
/// kills.
bool file_size_allowed(std::size_t bytes);

/// Writes what is held to `path`, compressed with gzip. Throws Error; then whatever was at `path` is still
/// there.
void write_copy(const SegmentImage& image, const std::string& path);

}  // namespace headrace::profile
