// The file in a run folder that names a live segment: rank<r>.live beside rank<r>.hrseg.
//
//     /dev/shm/headrace-1000/4711-123456-0.hrseg     path of the live segment; "memory" if there is no
//     file 0123456789abcdef                               identity, as the segment's header has it 4711
//     123456 89abcdef01234567                   pid, start time and boot of its owner
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headrace/profile/layout.h"

namespace headrace::profile {

/// A pointer is believed only where the segment that it names has its identity: whoever writes a folder by
/// hand cannot know that of another run.
struct LivePointer {
  std::string path;  ///< empty: recorded in memory only
  std::uint64_t identity = 0;
  int owner_pid = 0;
  std::uint64_t owner_start = 0;
  std::uint64_t boot = 0;

  static LivePointer to(const SegmentHeader& header, const std::string& path);
  /// Its owner certainly runs no more.
  bool owner_is_gone() const noexcept;
};

/// Path of the pointer of a copy.
std::string live_pointer_path(const std::string& copy_path);

/// Empty if the file is missing or `write_live_pointer` did not write it.
std::optional<LivePointer> read_live_pointer(const std::string& copy_path);

/// Returns "" or the reason why not; then no pointer is left.
std::string write_live_pointer(const std::string& copy_path, const LivePointer& pointer);
void remove_live_pointer(const std::string& copy_path) noexcept;

}  // namespace headrace::profile
