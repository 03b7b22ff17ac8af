#include "host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "headrace/profile/host/kernel_text.h"

namespace headrace::profile {
namespace {

constexpr std::size_t kVmstatBytes = 16384;

/// The number behind `name`, which may begin with a newline; what follows the number proves that it is whole.
std::optional<std::int64_t> line_of(std::string_view text, std::string_view name) noexcept {
  std::size_t at = text.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  at = text.find_first_not_of(' ', at + name.size());
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + at, end, value);
  if (error != std::errc() || stop == end || value < 0) return std::nullopt;
  return value;
}

}  // namespace

HostMemory::HostMemory(const std::string& proc) : text_(kVmstatBytes), page_bytes_(sysconf(_SC_PAGESIZE)) {
  vmstat_.open((proc + "/vmstat").c_str());
  meminfo_.open((proc + "/meminfo").c_str());
  const auto cgroup = find_cpu_cgroup(KernelFile::read_whole((proc + "/self/cgroup").c_str()),
                                      KernelFile::read_whole((proc + "/self/mountinfo").c_str()));
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
  const auto files = line_of(text, "\nworkingset_refault_file ");
  const auto all = files ? files : line_of(text, "\nworkingset_refault ");
  if (all) traffic.refaulted_bytes = *all * page_bytes_;
  if (const auto pages = line_of(text, "\npswpin ")) traffic.swapped_in_bytes = *pages * page_bytes_;
  return traffic;
}

std::optional<std::int64_t> HostMemory::available_bytes() noexcept {
  constexpr std::int64_t kKibibyte = 1024;
  auto available = line_of(meminfo_.read(text_), "\nMemAvailable:");
  if (available) *available *= kKibibyte;
  if (cgroup_.empty()) return available;
  std::array<char, 64> number;
  const auto limit = line_of(KernelFile::read_once((cgroup_ + "/memory.max").c_str(), number), "");
  const auto used = line_of(KernelFile::read_once((cgroup_ + "/memory.current").c_str(), number), "");
  const auto cached =
      line_of(KernelFile::read_once((cgroup_ + "/memory.stat").c_str(), text_), "\ninactive_file ");
  if (!limit || !used) return available;  // "max": there is no limit
  const std::int64_t left = std::max<std::int64_t>(0, *limit - *used + cached.value_or(0));
  return std::min(left, available.value_or(left));
}

}  // namespace headrace::profile
