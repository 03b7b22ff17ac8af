// The run's other ranks on this machine: their CPU time is the run's own, not a stranger's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace headrace::profile {

/// Reads the CPU counters of the other ranks' live segments, found through the pointers in the run folder.
/// The folder is looked through every five seconds; a counter is one small pread. One thread only; never
/// throws.
class RankNeighbours {
 public:
  /// CPU time, ns, that the other ranks have used since each was first seen; grows only. Empty while there
  /// are none. `own_live_path`: this rank's own segment, left out.
  std::optional<std::int64_t> cpu_ns(const std::string& run, const std::string& own_live_path,
                                     std::int64_t now);

 private:
  void look(const std::string& run, const std::string& own_live_path);

  std::map<std::string, std::int64_t> last_by_path_;
  std::int64_t total_ns_ = 0;
  std::int64_t looked_ns_ = 0;
  bool looked_ = false;
};

}  // namespace headrace::profile
