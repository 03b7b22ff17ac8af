// Live segments that are brought home between being found and being read.
#pragma once

#include <string>

namespace headrace::profile {

/// Remembers, for this thread, where a live segment's copy will be: its own process, or any other one of
/// Headrace, may write that copy and remove the live segment at any moment.
void expect_at(const std::string& live_path, const std::string& copy_path);

/// Where this thread expects its copy; "" if it has not found that segment.
std::string expected_at(const std::string& live_path);

}  // namespace headrace::profile
