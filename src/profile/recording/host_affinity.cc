#include "host_affinity.h"

#include <sched.h>

#include <array>
#include <bit>

namespace headrace::profile {
namespace {

constexpr std::size_t kWordBits = 8 * sizeof(unsigned long);

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

}  // namespace headrace::profile
