#include "profile/moved_segments.h"

#include <map>

namespace headrace::profile {
namespace {

// By thread: a lock could be held by another one when the process forks.
thread_local std::map<std::string, std::string> copies;

}  // namespace

void expect_at(const std::string& live_path, const std::string& copy_path) { copies[live_path] = copy_path; }

std::string expected_at(const std::string& live_path) {
  const auto found = copies.find(live_path);
  return found == copies.end() ? "" : found->second;
}

}  // namespace headrace::profile
