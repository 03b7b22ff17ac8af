#include "host_worker_cpu.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "headrace/metrics/clock.h"
#include "headrace/profile/process_identity.h"
#include "host_figure.h"

namespace headrace::profile {
namespace {

constexpr std::int64_t kRetryNs = 1'000'000'000;

using metrics::WorkerLife;

WorkerLife life_of(const metrics::WorkerCell& worker) noexcept {
  // Acquire: pairs with the release by which the worker published the cell, whose pid, tid and start are read
  // next.
  return static_cast<WorkerLife>(worker.life.load(std::memory_order_acquire));
}

/// The user's program needs its descriptors more than we do: an eighth of them at most.
int most_descriptors() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur / 8, kMaxWorkers));
}

}  // namespace

WorkerCpuReader::WorkerCpuReader(Segment& segment)
    : segment_(segment), slots_(kMaxWorkers), most_kept_(most_descriptors()) {}

void WorkerCpuReader::begin() noexcept {
  for (Slot& slot : slots_) {
    slot.total = {};
    slot.at_loop_ns = 0;
  }
}

void WorkerCpuReader::let_go(Slot& slot) noexcept {
  if (slot.file.is_open()) {
    slot.file.close();
    --kept_;
  }
}

void WorkerCpuReader::sample(std::int64_t now, const metrics::LoopClock::Reading& reading,
                             std::int64_t budget_ns, const std::function<void(int, std::uint64_t)>& meet) {
  constexpr int kAtLeast = 4;
  const std::uint32_t count =
      std::min(kMaxWorkers, segment_.header().high_water[static_cast<std::size_t>(Section::workers)].load(
                                std::memory_order_relaxed));
  const std::int64_t deadline = metrics::Clock::now_ns() + budget_ns;
  for (std::uint32_t visited = 0; visited < count; ++visited) {
    if (visited >= kAtLeast && metrics::Clock::now_ns() > deadline) return;
    next_ = next_ < count ? next_ : 0;
    visit(next_++, now, reading, meet);
  }
}

void WorkerCpuReader::visit(std::uint32_t index, std::int64_t now, const metrics::LoopClock::Reading& reading,
                            const std::function<void(int, std::uint64_t)>& meet) {
  Slot& slot = slots_[index];
  metrics::WorkerCell& worker = segment_.workers()[index];
  const WorkerLife life = life_of(worker);
  const std::int64_t started = worker.started_ns.load();
  const int pid = worker.pid.load();
  const int tid = worker.tid.load();
  const bool same = slot.started_ns == started && slot.pid == pid && slot.tid == tid;
  // A worker that just said that it has finished is read a last time, while its thread can still be found.
  const bool last_time = life == WorkerLife::finished && same && slot.file.is_open();
  if (life != WorkerLife::live && !last_time) {
    let_go(slot);
    return;
  }
  if (!same) {
    let_go(slot);
    slot = Slot();
    slot.started_ns = started;
    slot.pid = pid;
    slot.tid = tid;
  }
  SchedStat stat;
  if (now >= slot.retry_ns && read(slot, worker, now, stat, meet)) {
    add(slot, stat, now, reading);
    // Not into the cell of whoever took it meanwhile.
    if (reading.begun && life_of(worker) == life && worker.started_ns.load() == started) {
      worker.cpu_ns.store(slot.total.cpu_ns);
      worker.run_queue_ns.store(slot.total.run_queue_ns);
    }
  }
  if (last_time) let_go(slot);
}

bool WorkerCpuReader::read(Slot& slot, const metrics::WorkerCell& worker, std::int64_t now, SchedStat& stat,
                           const std::function<void(int, std::uint64_t)>& meet) {
  KernelFile file;
  if (slot.file.is_open()) {
    file = std::move(slot.file);
    --kept_;
  } else {
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/%d/task/%d/schedstat", slot.pid, slot.tid);
    file.open(path.data());
    // After opening: then a process of that start which still runs is the one that the file belongs to. A
    // worker in another container has a pid that means somebody else here.
    if (file.is_open() && !slot.verified && slot.pid != current_pid()) {
      const std::uint64_t start = worker.process_start.load();
      if (start == 0 || process_start(slot.pid) != start) file.close();
      if (file.is_open()) meet(slot.pid, start);
    }
  }
  std::array<char, 128> text;
  const auto parsed = parse_schedstat(file.read(text));
  if (!parsed) {
    slot.retry_ns = now + kRetryNs;
    return false;
  }
  slot.verified = true;
  stat = *parsed;
  if (kept_ < most_kept_) {
    slot.file = std::move(file);
    ++kept_;
  }
  return true;
}

void WorkerCpuReader::add(Slot& slot, const SchedStat& stat, std::int64_t now,
                          const metrics::LoopClock::Reading& reading) noexcept {
  if (!slot.has_baseline) {
    // Seen for the first time. Of what the thread used before it registered we know only that no more than
    // the time since then belongs to the worker.
    slot.has_baseline = true;
    slot.at_ns = std::min(now, slot.started_ns);
    slot.at_loop_ns = reading.begun ? std::max<std::int64_t>(0, reading.loop_ns - (now - slot.at_ns)) : 0;
    const std::int64_t since = now - slot.at_ns;
    slot.last.cpu_ns = std::max<std::int64_t>(0, stat.cpu_ns - since);
    slot.last.run_queue_ns =
        std::max<std::int64_t>(0, stat.run_queue_ns - (since - (stat.cpu_ns - slot.last.cpu_ns)));
  }
  if (now <= slot.at_ns) return;
  if (reading.begun) {
    const std::int64_t loop_ns = reading.loop_ns - slot.at_loop_ns;
    const std::int64_t real_ns = now - slot.at_ns;
    slot.total.cpu_ns += running_part(stat.cpu_ns - slot.last.cpu_ns, loop_ns, real_ns);
    slot.total.run_queue_ns += running_part(stat.run_queue_ns - slot.last.run_queue_ns, loop_ns, real_ns);
  }
  slot.last = stat;
  slot.at_ns = now;
  slot.at_loop_ns = reading.begun ? std::max(slot.at_loop_ns, reading.loop_ns) : 0;
}

}  // namespace headrace::profile
