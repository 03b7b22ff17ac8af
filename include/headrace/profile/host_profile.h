// The machine that a profile was recorded on. Declared as figure.h says; part of profile.h.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/profile/figure.h"
#include "headrace/profile/remote_profile.h"

namespace headrace::profile {

struct Host {
  int cores = 0;
  std::optional<double> cpu_share;
  std::optional<double> process_cpu_cores;
  std::optional<double> foreign_cpu_share;
  std::optional<double> foreign_contention_share;
  std::optional<double> throttled_share;
  std::optional<double> run_queue_wait_share;
  std::optional<double> io_pressure_share;
  std::optional<double> memory_pressure_share = std::nullopt;
  std::optional<double> refaulted_bytes = std::nullopt;
  std::optional<double> swapped_in_bytes = std::nullopt;
  std::optional<std::int64_t> available_memory = std::nullopt;
  std::optional<double> memory_loss_per_s = std::nullopt;
  std::optional<std::int64_t> shared_memory = std::nullopt;
  std::optional<double> gil_share;
  std::optional<std::int64_t> memory;
  std::optional<Remote> remote = std::nullopt;
};

constexpr About about(Of<Host>) { return {"Host", "The machine."}; }
template <class Visit>
constexpr void figures_of(Of<Host>, Visit&& figure) {
  figure("cores", &Host::cores, {"That affinity and cgroup quota allow, rounded up.", &kCores});
  figure("cpu_share", &Host::cpu_share, {"Share of the cores that this run uses, with its workers."});
  figure("process_cpu_cores", &Host::process_cpu_cores,
         {"The loop's own process, in cores. Near 1 with busy threads: think of the interpreter lock.",
          &kCores});
  figure("foreign_cpu_share", &Host::foreign_cpu_share,
         {"Share of the cores that everybody else uses, stolen time included."});
  figure("foreign_contention_share", &Host::foreign_contention_share,
         {"The part of `foreign_cpu_share` that this run went without. From 0.05 on the verdict is less "
          "sure, above 0.2 "
          "there are no predictions."});
  figure("throttled_share", &Host::throttled_share,
         {"Share of the time in which the CPU quota stopped the run. 0.1 is a cause by itself."});
  figure("run_queue_wait_share", &Host::run_queue_wait_share,
         {"Share of the workers' time spent ready to run, without a core. 0.04 is usual, more says that "
          "cores are short."});
  figure("io_pressure_share", &Host::io_pressure_share,
         {"Share of the time in which some task on the machine waited for I/O. Shown, and part of no rule."});
  figure("memory_pressure_share", &Host::memory_pressure_share,
         {"Share of the time in which some task of the run's cgroup (or the machine) waited for memory. Near "
          "0 where memory "
          "suffices."});
  figure("refaulted_bytes", &Host::refaulted_bytes,
         {"Read again soon after the page cache had to drop it, on the whole machine.", &kBytes});
  figure("swapped_in_bytes", &Host::swapped_in_bytes,
         {"Read back from swap, on the whole machine.", &kBytes});
  figure(
      "available_memory", &Host::available_memory,
      {"What could still be allocated when it was last read: the machine's memory, or what a cgroup's limit "
       "leaves.",
       &kBytes});
  figure("memory_loss_per_s", &Host::memory_loss_per_s,
         {"Bytes by which that became less per second, from the first second of the loop on; null in runs of "
          "less than ten minutes.",
          &kName});
  figure("shared_memory", &Host::shared_memory,
         {"Free in /dev/shm, the least that was seen. Worker processes hand batches over there.", &kBytes});
  figure("gil_share", &Host::gil_share,
         {"Probes that found the interpreter lock taken for 1 ms; only made while the process uses 0.6 cores "
          "and has busy workers in threads, else null."});
  figure("memory", &Host::memory, {"Resident memory of the run's processes.", &kBytes});
  figure("remote", &Host::remote,
         {"Requests to remote services that no operator made, as those of the training step; null: none."});
}

}  // namespace headrace::profile
