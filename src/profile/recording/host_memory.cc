#include "host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "headrace/profile/host/kernel_text.h"

namespace headrace::profile {
namespace {

constexpr std::size_t kVmstatBytes = 16384;

}  // namespace

HostMemory::HostMemory(const std::string& proc, const std::optional<CpuCgroup>& cgroup)
    : text_(kVmstatBytes), page_bytes_(sysconf(_SC_PAGESIZE)) {
  vmstat_.open((proc + "/vmstat").c_str());
  meminfo_.open((proc + "/meminfo").c_str());
  if (cgroup && cgroup->version == 2) cgroup_ = cgroup->mount + cgroup->path;
  const bool own = !cgroup_.empty() && pressure_.open((cgroup_ + "/memory.pressure").c_str());
  if (!own) pressure_.open((proc + "/pressure/memory").c_str());
}

std::optional<std::int64_t> HostMemory::pressure_ns() noexcept {
  std::array<char, 512> text;
  return parse_pressure_ns(pressure_.read(text));
}

HostMemory::Traffic HostMemory::traffic() noexcept {
  const std::string_view text = vmstat_.read(text_);
  Traffic traffic;
  // One figure before Linux 5.9, two since.
  const auto files = parse_number_behind(text, "\nworkingset_refault_file ");
  const auto all = files ? files : parse_number_behind(text, "\nworkingset_refault ");
  if (all) traffic.refaulted_bytes = *all * page_bytes_;
  if (const auto pages = parse_number_behind(text, "\npswpin "))
    traffic.swapped_in_bytes = *pages * page_bytes_;
  return traffic;
}

std::optional<std::int64_t> HostMemory::available_bytes() noexcept {
  constexpr std::int64_t kKibibyte = 1024;
  auto available = parse_number_behind(meminfo_.read(text_), "\nMemAvailable:");
  if (available) *available *= kKibibyte;
  if (cgroup_.empty()) return available;
  std::array<char, 64> number;
  const auto limit =
      parse_number_behind(KernelFile::read_once((cgroup_ + "/memory.max").c_str(), number), "");
  const auto used =
      parse_number_behind(KernelFile::read_once((cgroup_ + "/memory.current").c_str(), number), "");
  const auto cached = parse_number_behind(KernelFile::read_once((cgroup_ + "/memory.stat").c_str(), text_),
                                          "\ninactive_file ");
  if (!limit || !used) return available;  // "max": there is no limit
  const std::int64_t left = std::max<std::int64_t>(0, *limit - *used + cached.value_or(0));
  return std::min(left, available.value_or(left));
}

}  // namespace headrace::profile
