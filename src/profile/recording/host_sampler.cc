#include "headrace/profile/host_sampler.h"

#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "headrace/metrics/clock.h"
#include "headrace/profile/host/kernel_text.h"
#include "headrace/profile/process_identity.h"
#include "host_figure.h"
#include "host_kernel_file.h"
#include "host_limits.h"
#include "host_process_tree.h"
#include "host_worker_cpu.h"

namespace headrace::profile {
namespace {

/// Keeps the cost of reading kernel files below a fixed share of a core on any machine.
///
/// A read costs 1 to 4 us when it was made a moment ago, 15 to 40 us after 100 ms of other work (cold
/// caches), and hundreds where a machine has 128 CPUs or thousands of processes. Each is repeated only after
/// `kRest` times the CPU time that it took last: 0.01 % of a core.
class ReadThrottle {
 public:
  explicit ReadThrottle(std::int64_t least_ns) : least_ns_(least_ns) {}

  template <class Read>
  bool run_if_due(std::int64_t now, Read&& read) {
    if (now < due_ns_) return false;
    // CPU time, not wall time: a sampler that was preempted on a busy machine must not pause for seconds.
    const std::int64_t before = metrics::Clock::thread_cpu_ns();
    read();
    const std::int64_t cost = metrics::Clock::thread_cpu_ns() - before;
    due_ns_ = now + std::clamp(cost * kRest, least_ns_, std::max(least_ns_, kLongestNs));
    return true;
  }

 private:
  static constexpr std::int64_t kRest = 10'000;
  static constexpr std::int64_t kLongestNs = 10'000'000'000;
  std::int64_t least_ns_;
  std::int64_t due_ns_ = 0;
};

using metrics::HostCell;
using metrics::HostFigure;

/// While no loop runs, baselines this fresh are good enough.
constexpr std::int64_t kRestingNs = 900'000'000;
/// The kernel counts in ticks of 10 ms: of 20 in 100 ms on two cores, two may be missing.
constexpr double kNearlyAll = 0.9;

/// A file that stays open and is opened again, at most once a second, when it failed.
struct ReopenedFile {
  const char* path;
  KernelFile file;
  std::int64_t retry_ns = 0;

  std::string_view read(std::int64_t now, std::span<char> buffer) noexcept {
    if (!file.is_open()) {
      if (now < retry_ns) return {};
      retry_ns = now + kSecondNs;
      file.open(path);
    }
    return file.read(buffer);
  }
};

}  // namespace

struct HostSampler::Impl {
  explicit Impl(Segment& segment_to_fill)
      : segment(segment_to_fill),
        cell(segment.host()),
        tree(current_pid()),
        workers(segment),
        cgroup(own_cgroup("/proc")),
        quota(cgroup),
        memory("/proc", cgroup),
        cpus(allowed_cpus(current_pid())),
        // About 100 bytes a CPU; the interrupts behind them are cut off.
        stat_text(4096 + 256 * static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_CONF)))) {
    for (int which = 0; which < metrics::kHostFigures; ++which)
      figures.emplace_back(cell, static_cast<HostFigure>(which));
    cell.begun.store(0);
    cell.cores.store(usable_cores(cpus.count(), quota.cores()));
  }

  void sample(std::int64_t now);
  void begin() noexcept;
  void close_windows(std::int64_t loop_ns) noexcept;
  void read_process(std::int64_t now, std::int64_t loop_ns) noexcept;
  void read_pressures(std::int64_t now, std::int64_t loop_ns) noexcept;
  void read_busy(std::int64_t now, std::int64_t loop_ns) noexcept;
  void read_tree(std::int64_t now, std::int64_t loop_ns);
  void refresh_limits() noexcept;
  void read_room(std::int64_t now) noexcept;

  FigureTracker& figure(HostFigure which) noexcept { return figures[static_cast<std::size_t>(which)]; }
  void add(HostFigure which, std::optional<std::int64_t> raw, std::int64_t now,
           std::int64_t loop_ns) noexcept {
    if (raw) {
      figure(which).add(*raw, now, loop_ns);
    } else {
      figure(which).fail();
    }
  }

  Segment& segment;
  HostCell& cell;
  std::vector<FigureTracker> figures;              ///< by HostFigure
  std::optional<std::int64_t> other_ranks_cpu_ns;  ///< as told; unknown while there are no other ranks

  ProcessTree tree;
  WorkerCpuReader workers;
  std::optional<CpuCgroup> cgroup;
  CpuQuota quota;
  HostMemory memory;
  CpuSet cpus;
  std::vector<char> stat_text;
  ReopenedFile stat{"/proc/stat", {}};
  ReopenedFile io{"/proc/pressure/io", {}};
  ReopenedFile cpu{"/proc/pressure/cpu", {}};

  ReadThrottle pressure_pace{0};
  ReadThrottle busy_pace{0};
  ReadThrottle tree_pace{0};
  ReadThrottle scan_pace{kSecondNs};
  ReadThrottle refresh_pace{kSecondNs};
  ReadThrottle limits_pace{kSecondNs};

  std::int64_t last_ns = 0;
  std::int64_t last_loop_ns = -1;  ///< once the loop has begun
  bool was_running = false;
  bool looked_around = false;
  std::int64_t last_process_cpu_ns = -1;
};

void HostSampler::Impl::begin() noexcept {
  cell.grid.reset();
  for (FigureTracker& each : figures) each.begin();
  workers.begin();
  cell.begun.store(1);
}

void HostSampler::Impl::close_windows(std::int64_t loop_ns) noexcept {
  cell.grid.advance(
      loop_ns,
      [&](std::uint32_t index, std::int64_t) {
        for (int which = 0; which < metrics::kHostFigures; ++which) {
          cell.windows.at(static_cast<int>(index), which)
              .store(cell.totals[static_cast<std::size_t>(which)].load());
        }
      },
      [&] { cell.windows.halve(); });
}

void HostSampler::Impl::sample(std::int64_t now) {
  const metrics::LoopClock::Reading reading = segment.header().loop_clock.read(now);
  const bool running = reading.begun && !reading.paused;
  const bool rests = !running && !was_running && (!reading.begun || reading.loop_ns == last_loop_ns);
  if (rests && last_ns != 0 && now - last_ns < kRestingNs) return;
  if (reading.begun && cell.begun.load() == 0) begin();
  if (reading.begun) close_windows(reading.loop_ns);

  figure(HostFigure::covered).add(now, now, reading.loop_ns);
  read_process(now, reading.loop_ns);
  if (other_ranks_cpu_ns) figure(HostFigure::other_ranks_cpu).add(*other_ranks_cpu_ns, now, reading.loop_ns);
  pressure_pace.run_if_due(now, [&] { read_pressures(now, reading.loop_ns); });
  if (running)
    limits_pace.run_if_due(now, [&] {
      refresh_limits();
      read_room(now);
    });
  busy_pace.run_if_due(now, [&] { read_busy(now, reading.loop_ns); });

  // 0.02 % of a core, so that 64 workers come round in a few ticks; on the first sample all of them.
  const std::int64_t budget =
      last_ns == 0 ? 2'000'000 : std::clamp<std::int64_t>((now - last_ns) / 5000, 10'000, 1'000'000);
  last_ns = now;
  last_loop_ns = reading.begun ? reading.loop_ns : -1;
  was_running = running;
  workers.sample(now, reading, budget, [&](int pid, std::uint64_t start) { tree.adopt(pid, start); });
  read_tree(now, reading.loop_ns);
}

void HostSampler::Impl::read_process(std::int64_t now, std::int64_t loop_ns) noexcept {
  last_process_cpu_ns = metrics::Clock::process_cpu_ns();
  figure(HostFigure::process_cpu).add(last_process_cpu_ns, now, loop_ns);
}

void HostSampler::Impl::read_pressures(std::int64_t now, std::int64_t loop_ns) noexcept {
  add(HostFigure::throttled, quota.throttled_ns(), now, loop_ns);
  std::array<char, 512> text;
  add(HostFigure::io_pressure, parse_pressure_ns(io.read(now, text)), now, loop_ns);
  add(HostFigure::cpu_pressure, parse_pressure_ns(cpu.read(now, text)), now, loop_ns);
  add(HostFigure::memory_pressure, memory.pressure_ns(), now, loop_ns);
  const HostMemory::Traffic traffic = memory.traffic();
  add(HostFigure::refaulted, traffic.refaulted_bytes, now, loop_ns);
  add(HostFigure::swapped_in, traffic.swapped_in_bytes, now, loop_ns);
}

void HostSampler::Impl::read_busy(std::int64_t now, std::int64_t loop_ns) noexcept {
  add(HostFigure::busy, parse_busy_ns(stat.read(now, stat_text), cpus, tick_ns()), now, loop_ns);
}

void HostSampler::Impl::read_tree(std::int64_t now, std::int64_t loop_ns) {
  // The first look reads every process of the machine; it must not set the pace of those that read new ones
  // only.
  if (!looked_around) tree.find_members();
  looked_around = true;
  scan_pace.run_if_due(now, [&] { tree.find_members(); });
  const bool refreshed = refresh_pace.run_if_due(now, [&] { tree.refresh(); });
  if (refreshed) cell.memory_bytes.store(tree.memory_bytes());
  tree_pace.run_if_due(now, [&] {
    const std::int64_t cpu_ns = tree.cpu_ns(last_process_cpu_ns);
    cell.live_tree_cpu_ns.store(cpu_ns);
    figure(HostFigure::tree_cpu).add(cpu_ns, now, loop_ns);
  });
}

void HostSampler::Impl::refresh_limits() noexcept {
  const CpuSet allowed = allowed_cpus(current_pid());
  if (allowed != cpus) {
    // Other CPUs have other counters: go on from where these stand.
    cpus = allowed;
    const auto busy_ns = parse_busy_ns(stat.file.read(stat_text), cpus, tick_ns());
    FigureTracker& busy = figure(HostFigure::busy);
    if (busy_ns && busy.has_baseline()) busy.rebase(*busy_ns);
  }
  cell.cores.store(usable_cores(cpus.count(), quota.cores()));
}

/// Memory that is left, and shared memory.
void HostSampler::Impl::read_room(std::int64_t now) noexcept {
  struct statvfs shared{};
  if (statvfs("/dev/shm", &shared) == 0) {
    const auto free = static_cast<std::int64_t>(shared.f_bavail * shared.f_frsize);
    const std::int64_t least = cell.shared_memory_bytes.load();
    cell.shared_memory_bytes.store(least > 0 ? std::min(least, free) : free);
  }
  const auto available = memory.available_bytes();
  if (!available) return;
  if (cell.first_available_ns.load() == 0) {
    cell.first_available_bytes.store(*available);
    cell.first_available_ns.store(now);
  }
  cell.available_bytes.store(*available);
  cell.available_ns.store(now);
}

HostSampler::HostSampler(Segment& segment) : impl_(std::make_unique<Impl>(segment)) {}
HostSampler::~HostSampler() = default;

void HostSampler::sample(std::int64_t now) noexcept try { impl_->sample(now); } catch (...) {
  // Out of memory: this sample is lost, the next one covers its time.
}

void HostSampler::set_other_ranks_cpu(std::int64_t total_ns) noexcept {
  impl_->other_ranks_cpu_ns = total_ns;
}

double HostSampler::process_cores() const noexcept { return impl_->figure(HostFigure::process_cpu).rate(); }
bool HostSampler::cores_are_full() const noexcept {
  const FigureTracker& busy = impl_->figure(HostFigure::busy);
  return busy.has_baseline() && busy.rate() >= kNearlyAll * static_cast<double>(impl_->cpus.count());
}

}  // namespace headrace::profile
