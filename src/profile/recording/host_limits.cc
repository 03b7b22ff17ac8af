#include "host_limits.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string_view>

#include "headrace/profile/host/kernel_text.h"

namespace headrace::profile {
namespace {

constexpr std::size_t kWordBits = 8 * sizeof(unsigned long);

constexpr std::size_t kPathBytes = 4096;
constexpr std::size_t kVmstatBytes = 16384;

std::string_view read_in(const std::string& folder, const char* file, std::span<char> buffer) noexcept {
  std::array<char, kPathBytes> path;
  const int length = std::snprintf(path.data(), path.size(), "%s/%s", folder.c_str(), file);
  if (length < 0 || static_cast<std::size_t>(length) >= path.size()) return {};
  return KernelFile::read_once(path.data(), buffer);
}

std::optional<double> quota_of(const std::string& folder, int version) noexcept {
  std::array<char, 128> text;
  if (version == 2) return parse_cpu_max(read_in(folder, "cpu.max", text));
  std::array<char, 128> period;
  return parse_cfs_quota(read_in(folder, "cpu.cfs_quota_us", text),
                         read_in(folder, "cpu.cfs_period_us", period));
}

bool has_throttle(const std::string& folder) noexcept {
  std::array<char, 2048> text;
  return parse_throttled_ns(read_in(folder, "cpu.stat", text)).has_value();
}

}  // namespace

CpuSet allowed_cpus(int tid) noexcept {
  // The C library's cpu_set_t is too small for machines with more CPUs than it has bits; these words are not.
  std::array<unsigned long, kMaxCpus / kWordBits> words{};
  CpuSet cpus;
  if (sched_getaffinity(tid, sizeof(words), reinterpret_cast<cpu_set_t*>(words.data())) != 0) return cpus;
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (unsigned long left = words[i]; left != 0; left &= left - 1)
      cpus.set(i * kWordBits + static_cast<std::size_t>(std::countr_zero(left)));
  }
  return cpus;
}

std::optional<CpuCgroup> own_cgroup(const std::string& proc) {
  auto found = find_cpu_cgroup(KernelFile::read_whole((proc + "/self/cgroup").c_str()),
                               KernelFile::read_whole((proc + "/self/mountinfo").c_str()));
  // A container may show the path of the machine but mount only its own part.
  if (found && access((found->mount + found->path).c_str(), F_OK) != 0) found->path.clear();
  return found;
}

CpuQuota::CpuQuota(const std::optional<CpuCgroup>& cgroup) {
  if (!cgroup) return;
  version_ = cgroup->version;
  std::string path = cgroup->path;
  double tightest = std::numeric_limits<double>::infinity();
  while (true) {
    const std::string folder = cgroup->mount + path;
    if (has_throttle(folder)) {
      const double cores = quota_of(folder, version_).value_or(std::numeric_limits<double>::infinity());
      if (folder_.empty() || cores < tightest) folder_ = folder;
      tightest = std::min(tightest, cores);
    }
    if (path.empty()) return;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

double CpuQuota::cores() noexcept {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  return folder_.empty() ? kNone : quota_of(folder_, version_).value_or(kNone);
}

std::optional<std::int64_t> CpuQuota::throttled_ns() noexcept {
  if (folder_.empty()) return std::nullopt;
  std::array<char, 2048> text;
  if (stat_.is_open()) return parse_throttled_ns(stat_.read(text));
  std::array<char, kPathBytes> path;
  const int length = std::snprintf(path.data(), path.size(), "%s/cpu.stat", folder_.c_str());
  if (length < 0 || static_cast<std::size_t>(length) >= path.size() || !stat_.open(path.data()))
    return std::nullopt;
  return parse_throttled_ns(stat_.read(text));
}

std::uint32_t usable_cores(std::size_t allowed_cpus, double quota_cores) noexcept {
  if (allowed_cpus == 0) allowed_cpus = static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  const auto cpus = static_cast<double>(std::min(allowed_cpus, kMaxCpus));
  return static_cast<std::uint32_t>(std::clamp(std::ceil(quota_cores), 1.0, cpus));
}

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
