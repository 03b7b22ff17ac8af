// Memory is short: the kernel takes pages away that are needed again, or holds processes back.
#include <algorithm>

#include "sentences.h"

namespace headrace::analysis {

std::optional<Finding> judge_memory_pressure(const Case& facts) {
  const profile::Host& host = facts.profile.host;
  if (facts.candidate < 0 || !host.memory_pressure_share ||
      *host.memory_pressure_share < facts.thresholds.memory.pressure_share)
    return std::nullopt;
  // A body that always computes does not wait for memory.
  const double computes = std::max(0.0, cpu_bound_share(facts.op()));
  if (computes >= kMostlyComputes && host.swapped_in_bytes.value_or(0) <= 0) return std::nullopt;
  Finding finding;
  finding.headline = "memory is short";
  std::string says = "tasks waited for memory " + percent(*host.memory_pressure_share) + " of the time";
  if (host.refaulted_bytes.value_or(0) > 0)
    says +=
        "; " + memory_size(*host.refaulted_bytes) + " were read again after the page cache had to drop them";
  if (host.swapped_in_bytes.value_or(0) > 0)
    says += "; " + memory_size(*host.swapped_in_bytes) + " came back from swap";
  finding.evidence =
      cause_evidence(std::move(says), {{"memory_pressure_share", *host.memory_pressure_share},
                                       {"refaulted_bytes", host.refaulted_bytes.value_or(0)},
                                       {"swapped_in_bytes", host.swapped_in_bytes.value_or(0)}});
  finding.advice.push_back(in_words(
      "give the run more memory, or let it use less: fewer workers, a smaller prefetch, arrays instead of "
      "Python objects in the dataset, other processes elsewhere"));
  return finding;
}

}  // namespace headrace::analysis
