#include "lock_watch.h"

#include <algorithm>

#include "headrace/profile/process_identity.h"

namespace headrace::profile {
namespace {

/// glibc's condition variable has two futexes, side by side, and uses them in turn.
constexpr std::uintptr_t kSameCondition = 16;

bool is_at(std::uintptr_t futex, std::uintptr_t lock) noexcept {
  return futex != 0 && (futex > lock ? futex - lock : lock - futex) < kSameCondition;
}

}  // namespace

ThreadLook LockWatch::look_at(const metrics::WorkerCell& worker) {
  const int tid = worker.tid.load();
  const std::int64_t started_ns = worker.started_ns.load();
  const auto same = [&](const Thread& thread) {
    return thread.tid == tid && thread.started_ns == started_ns;
  };
  auto thread = std::find_if(threads_.begin(), threads_.end(), same);
  if (thread == threads_.end()) {
    thread = std::find_if(threads_.begin(), threads_.end(), [](const Thread& t) { return t.tid == 0; });
    if (thread == threads_.end()) return {};
    *thread = {tid, started_ns, AwaitedFutex(tid)};
  }
  const ThreadLook look = thread->awaited.look();
  if (!look.known) *thread = {};
  return look;
}

void LockWatch::look(std::uintptr_t lock, std::optional<int> holder) {
  const int pid = current_pid();
  const auto used = [&](Section section) {
    return segment_.header().high_water[static_cast<std::size_t>(section)].load(std::memory_order_relaxed);
  };
  const auto count = [&](auto& cell, const metrics::WorkerCell& worker) {
    const ThreadLook look = look_at(worker);
    if (!look.known) return look;
    cell.looks.bump(1);
    if (is_at(look.futex, lock)) cell.lock_looks.bump(1);
    if (holder) cell.holder_looks.bump(1);
    if (holder == worker.tid.load()) cell.held_looks.bump(1);
    return look;
  };
  const std::uint32_t workers = std::min(kMaxWorkers, used(Section::workers));
  for (std::uint32_t i = 0; i < workers; ++i) {
    const metrics::WorkerCell& worker = segment_.workers()[i];
    const std::uint32_t account = worker.account.load();
    const bool live =
        worker.life.load(std::memory_order_acquire) ==  // pairs with the publication of pid, tid
        static_cast<std::uint32_t>(metrics::WorkerLife::live);
    if (account < metrics::kOperatorAccount || !live || worker.pid.load() != pid) continue;
    metrics::OperatorCell& cell = segment_.cells()[(account - metrics::kOperatorAccount) % kMaxCells];
    count(cell, worker);
  }
  for (std::uint32_t i = 0; i < std::min(kMaxLoaders, used(Section::loaders)); ++i) {
    metrics::SinkCell& sink = segment_.loaders()[i].sink;
    const std::uint32_t index = sink.worker.load();
    if (sink.active.load() == 0 || index == 0 || index > kMaxWorkers) continue;
    const metrics::WorkerCell& worker = segment_.workers()[index - 1];
    if (worker.pid.load() != pid ||
        worker.account.load() != static_cast<std::uint32_t>(metrics::WorkerState::computing))
      continue;
    if (count(sink, worker).runs) sink.running_looks.bump(1);
  }
}

}  // namespace headrace::profile
