#include "host_of.h"

#include <algorithm>

#include "units.h"

namespace headrace::loader_files {
namespace {

std::optional<double> steady_mean(const RankFiles& files, const TimedSeries& series) {
  const BatchRecords* batches = files.batches();
  if (batches == nullptr || !batches->has_times) return series.mean();
  const double from = batches->batches.front().end_ms.value_or(0);
  const double to = batches->batches.back().end_ms.value_or(0);
  const std::optional<double> within = series.mean_between(from, to);
  return within ? within : series.mean();
}

}  // namespace

std::optional<double> steady_cores(const RankFiles& files, const TimedSeries& percent) {
  const std::optional<double> mean = steady_mean(files, percent);
  if (!mean) return std::nullopt;
  return *mean / kPercent;
}

void add_host(const RankFiles& files, profile::Profile& profile) {
  if (!files.cpu) return;
  const CpuFile& cpu = *files.cpu;
  profile::Host& host = profile.host;
  host.cores = cpu.cores.value_or(0);
  host.process_cpu_cores = steady_cores(files, cpu.process_percent);
  if (cpu.resident_bytes) host.memory = static_cast<std::int64_t>(std::min(*cpu.resident_bytes, 1e15));
  if (host.cores <= 0 || !host.process_cpu_cores) return;
  // Worker processes are part of their operators, and not of the process.
  double in_operators = 0;
  for (const OperatorCpu& op : cpu.operators) in_operators += steady_cores(files, op.percent).value_or(0);
  host.cpu_share = std::min(1.0, std::max(*host.process_cpu_cores, in_operators) / host.cores);
  const std::optional<double> idle = steady_mean(files, cpu.idle_percent);
  const std::optional<double> io = steady_mean(files, cpu.io_percent);
  if (!idle) return;
  const double busy = std::clamp(1 - (*idle + io.value_or(0)) / kPercent, 0.0, 1.0);
  host.foreign_cpu_share = std::max(0.0, busy - *host.cpu_share);
}

}  // namespace headrace::loader_files
