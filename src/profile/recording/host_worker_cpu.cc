#include "host_worker_cpu.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <limits>
#include <string_view>

#include "headrace/metrics/clock.h"
#include "headrace/profile/host/kernel_text.h"
#include "headrace/profile/process_identity.h"
#include "host_figure.h"
#include "host_kernel_file.h"
#include "host_limits.h"
#include "host_storage.h"
#include "profile/file_systems.h"

namespace headrace::profile {
namespace {

constexpr std::int64_t kRetryNs = 1'000'000'000;

using metrics::WorkerCell;
using metrics::WorkerLife;

WorkerLife life_of(const WorkerCell& worker) noexcept {
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

/// Counters of one file.
using Counters = std::array<std::int64_t, 3>;

bool parse_cpu(std::string_view text, Counters& counters, WorkerGlance&) noexcept {
  const auto stat = parse_schedstat(text);
  if (stat) counters = {stat->cpu_ns, stat->run_queue_ns};
  return stat.has_value();
}

bool parse_thread(std::string_view text, Counters& counters, WorkerGlance& glance) noexcept {
  const auto stat = parse_process_stat(text, tick_ns());
  if (stat) {
    counters = {stat->major_faults};
    glance.state = stat->state;
  }
  return stat.has_value();
}

bool parse_process(std::string_view text, Counters& counters, WorkerGlance& glance) noexcept {
  const auto stat = parse_process_stat(text, tick_ns());
  if (stat) {
    counters = {stat->own_ns};
    glance.threads = static_cast<int>(std::min<std::int64_t>(stat->threads, std::numeric_limits<int>::max()));
  }
  return stat.has_value();
}

bool parse_reads(std::string_view text, Counters& counters, WorkerGlance&) noexcept {
  constexpr std::array<std::string_view, 3> kNames{"rchar: ", "syscr: ", "\nread_bytes: "};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const auto number = parse_number_behind(text, kNames[i]);
    if (!number) return false;
    counters[i] = *number;
  }
  return true;
}

/// Use before a thread registered is not the worker's, whose CPU time is at most the time since
/// then.
Counters cpu_before(const Counters& now, std::int64_t since_ns) noexcept {
  const std::int64_t cpu_ns = std::max<std::int64_t>(0, now[0] - since_ns);
  return {cpu_ns, std::max<std::int64_t>(0, now[1] - (since_ns - (now[0] - cpu_ns)))};
}

struct WorkerFile {
  const char* file;
  bool (*parse)(std::string_view text, Counters& counters, WorkerGlance& glance) noexcept;
  /// Whether something bounds what came before the first look. Nothing bounds what a thread can read in a time,
  /// or other threads of its process can compute: that is counted from the first look on.
  bool since_start;
  std::array<metrics::Relaxed<std::int64_t> WorkerCell::*, 3> cells;
  bool stays_open;  ///< between reads; one file a worker, so that descriptors last
  bool of_process;  ///< all threads of a process: not of the sink's, whose other threads are not the worker's
  std::int64_t every_ns = 0;
};

/// Files that are opened again for each reading take 10 to 15 us each, too much for every tick.
constexpr std::int64_t kReadsNs = 500'000'000;
constexpr std::int64_t kStateNs = 250'000'000;

constexpr std::array<WorkerFile, 4> kWorkerFiles{
    {{"schedstat", parse_cpu, true, {&WorkerCell::cpu_ns, &WorkerCell::run_queue_ns}, true, false},
     {"io",
      parse_reads,
      false,
      {&WorkerCell::read_bytes, &WorkerCell::read_calls, &WorkerCell::storage_bytes},
      false,
      false,
      kReadsNs},
     {"stat", parse_thread, false, {&WorkerCell::major_faults}, false, false, kStateNs},
     {"../../stat", parse_process, false, {&WorkerCell::process_cpu_ns}, false, true, kRetryNs}}};

/// One file of one worker.
struct Reading {
  KernelFile file;
  std::int64_t retry_ns = 0;  ///< do not try again before
  bool has_baseline = false;
  Counters last{};
  Counters total{};
  std::int64_t at_ns = 0;
  std::int64_t at_loop_ns = 0;

  /// Returns whether there is a total now.
  bool add(const WorkerFile& source, const Counters& raw, std::int64_t started_ns, std::int64_t now,
           const metrics::LoopClock::Reading& reading) noexcept {
    if (!has_baseline) {
      has_baseline = true;
      at_ns = source.since_start ? std::min(now, started_ns) : now;
      at_loop_ns = reading.begun ? std::max<std::int64_t>(0, reading.loop_ns - (now - at_ns)) : 0;
      last = source.since_start ? cpu_before(raw, now - at_ns) : raw;
    }
    if (now <= at_ns) return false;
    for (std::size_t i = 0; reading.begun && i < total.size(); ++i)
      total[i] += running_part(raw[i] - last[i], reading.loop_ns - at_loop_ns, now - at_ns);
    last = raw;
    at_ns = now;
    at_loop_ns = reading.begun ? std::max(at_loop_ns, reading.loop_ns) : 0;
    return true;
  }
};

}  // namespace

struct WorkerCpuReader::Slot {
  // Cells are given out again: these three say whose the slot is.
  std::int64_t started_ns = 0;
  int pid = 0;
  int tid = 0;
  bool verified = false;         ///< the process behind the pid is the one that registered
  Counters raw{};                ///< as just read
  WorkerGlance glance;           ///< as just read
  std::int64_t affinity_ns = 0;  ///< do not read it again before
  std::array<Reading, kWorkerFiles.size()> readings;
};

WorkerCpuReader::WorkerCpuReader(Segment& segment)
    : segment_(segment), slots_(new Slot[kMaxWorkers]), most_kept_(most_descriptors()) {}
WorkerCpuReader::~WorkerCpuReader() = default;

void WorkerCpuReader::begin() noexcept {
  for (std::uint32_t i = 0; i < kMaxWorkers; ++i) {
    for (Reading& reading : slots_[i].readings) {
      reading.total = {};
      reading.at_loop_ns = 0;
    }
  }
}

void WorkerCpuReader::let_go(Slot& slot) noexcept {
  for (Reading& reading : slot.readings) {
    if (!reading.file.is_open()) continue;
    reading.file.close();
    --kept_;
  }
}

void WorkerCpuReader::sample(std::int64_t now, const metrics::LoopClock::Reading& reading,
                             std::int64_t budget_ns, const std::function<void(int, std::uint64_t)>& meet) {
  constexpr int kAtLeast = 4;
  const std::uint32_t count = segment_.given_out(Section::workers);
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
  WorkerCell& worker = segment_.workers()[index];
  const WorkerLife life = life_of(worker);
  const std::int64_t started = worker.started_ns.load();
  const int pid = worker.pid.load();
  const int tid = worker.tid.load();
  const bool same = slot.started_ns == started && slot.pid == pid && slot.tid == tid;
  // A worker that just said that it has finished is read a last time, while its thread can still be found.
  const bool last_time = life == WorkerLife::finished && same &&
                         std::any_of(slot.readings.begin(), slot.readings.end(),
                                     [](const Reading& r) { return r.file.is_open(); });
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
  const std::uint32_t account = worker.account.load();
  for (std::size_t i = 0; i < kWorkerFiles.size(); ++i) {
    Reading& of = slot.readings[i];
    const WorkerFile& file = kWorkerFiles[i];
    if (file.of_process && pid == current_pid()) continue;
    if ((now < of.retry_ns && !last_time) || !read(slot, i, worker, now, meet)) continue;
    // More often at first: short runs have figures, too.
    if (file.every_ns > 0)
      of.retry_ns = now + std::clamp<std::int64_t>((now - started) / 2, 0, file.every_ns);
    const bool measured = of.add(file, slot.raw, started, now, reading);
    // Not into the cell of whoever took it meanwhile.
    if (!reading.begun || life_of(worker) != life || worker.started_ns.load() != started) continue;
    for (std::size_t k = 0; measured && k < of.total.size(); ++k) {
      if (file.cells[k] != nullptr) (worker.*file.cells[k]).store(of.total[k]);
    }
    note(slot, account, reading, worker);
  }
  if (slot.verified && now >= slot.affinity_ns) {
    slot.affinity_ns = now + kRetryNs;
    worker.allowed_cores.store(static_cast<std::int32_t>(allowed_cpus(tid).count()));
  }
  if (last_time) let_go(slot);
}

/// "D" is the kernel's uninterruptible sleep: a disk, a network file system, memory that is being reclaimed. File
/// systems in user space let signals wake who waits for them.
void WorkerCpuReader::note(const Slot& slot, std::uint32_t account,
                           const metrics::LoopClock::Reading& reading, WorkerCell& worker) {
  const WorkerGlance& glance = slot.glance;
  if (glance.threads > worker.process_threads.load()) worker.process_threads.store(glance.threads);
  if (glance.state == 0 || account < metrics::kOperatorAccount || reading.paused) return;
  metrics::OperatorCell& cell = segment_.cells()[(account - metrics::kOperatorAccount) % kMaxCells];
  cell.state_samples.bump(1);
  const bool waits =
      glance.state == 'D' || (glance.state == 'S' && waits_for_files(sleeps_in(slot.pid, slot.tid)));
  if (!waits) return;
  cell.storage_samples.bump(1);
  // Seldom, as it takes several files: the 1st, 2nd, 4th, ... time.
  if (!std::has_single_bit(cell.storage_samples.load())) return;
  const std::uint32_t type = file_system_code(file_system_in_use(slot.pid, slot.tid));
  if (type != 0) cell.file_system.store(type);
}

bool WorkerCpuReader::open(Slot& slot, std::size_t source, const WorkerCell& worker,
                           const std::function<void(int, std::uint64_t)>& meet) {
  KernelFile& file = slot.readings[source].file;
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/task/%d/%s", slot.pid, slot.tid,
                kWorkerFiles[source].file);
  if (!file.open(path.data())) return false;
  if (slot.verified || slot.pid == current_pid()) return true;
  // After opening: then a process of that start which still runs is the one that the file belongs to. A
  // worker in another container has a pid that means somebody else here.
  const std::uint64_t start = worker.process_start.load();
  if (start == 0 || process_start(slot.pid) != start) {
    file.close();
    return false;
  }
  meet(slot.pid, start);
  return true;
}

bool WorkerCpuReader::read(Slot& slot, std::size_t source, const WorkerCell& worker, std::int64_t now,
                           const std::function<void(int, std::uint64_t)>& meet) {
  Reading& of = slot.readings[source];
  if (of.file.is_open()) --kept_;
  std::array<char, 512> text;
  const bool opened = of.file.is_open() || open(slot, source, worker, meet);
  slot.raw = {};
  slot.glance = {};
  if (!opened || !kWorkerFiles[source].parse(of.file.read(text), slot.raw, slot.glance)) {
    of.file.close();
    of.retry_ns = now + kRetryNs;
    return false;
  }
  slot.verified = true;
  if (kWorkerFiles[source].stays_open && kept_ < most_kept_) {
    ++kept_;
  } else {
    of.file.close();
  }
  return true;
}

}  // namespace headrace::profile
