#include "profile/thread_state.h"

#include <array>
#include <cstdio>

#include "headrace/profile/host/kernel_text.h"
#include "host_kernel_file.h"
#include "host_storage.h"

namespace headrace::profile {

std::string state_of_thread(int pid, int tid) {
  std::array<char, 64> path{};
  std::array<char, 512> text;
  std::snprintf(path.data(), path.size(), "/proc/%d/task/%d/stat", pid, tid);
  const auto stat = parse_process_stat(KernelFile::read_once(path.data(), text), tick_ns());
  if (!stat) return {};
  if (stat->state == 'R') return "runs";
  const std::string place = sleeps_in(pid, tid);
  const std::string in = place.empty() || place == "0" ? "" : " in " + place;
  if (stat->state == 'D') return "waits for storage" + in;
  if (stat->state == 'T' || stat->state == 't') return "is stopped";
  return "sleeps" + in;
}

}  // namespace headrace::profile
