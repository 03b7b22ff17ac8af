#include "lock_watch.h"

#include <algorithm>

#include "headrace/profile/process_identity.h"
#include "profile/record_life.h"

namespace headrace::profile {
namespace {

/// glibc's condition variable has two futexes, side by side, and uses them in turn.
constexpr std::uintptr_t kSameCondition = 16;

bool is_at(std::uintptr_t futex, std::uintptr_t lock) noexcept {
  return futex != 0 && (futex > lock ? futex - lock : lock - futex) < kSameCondition;
}

/// `cell`: the operator's or the sink's.
template <class Cell>
void count(Cell& cell, const metrics::WorkerCell& worker, const ThreadLook& look, std::uintptr_t lock,
           std::optional<int> holder) noexcept {
  if (!look.known) return;
  cell.samples.bump(1);
  if (is_at(look.futex, lock)) cell.lock_samples.bump(1);
  if (holder) cell.holder_samples.bump(1);
  if (holder == worker.tid.load()) cell.held_samples.bump(1);
}

}  // namespace

LockWatch::Thread* LockWatch::find(const metrics::WorkerCell& worker) noexcept {
  const int tid = worker.tid.load();
  const std::int64_t started_ns = worker.started_ns.load();
  const auto found = std::find_if(threads_.begin(), threads_.end(), [&](const Thread& thread) {
    return thread.tid == tid && thread.started_ns == started_ns;
  });
  return tid == 0 || found == threads_.end() ? nullptr : &*found;
}

LockWatch::Thread* LockWatch::find_or_add(const metrics::WorkerCell& worker) {
  if (Thread* known = find(worker)) return known;
  const auto free =
      std::find_if(threads_.begin(), threads_.end(), [](const Thread& t) { return t.tid == 0; });
  if (free == threads_.end()) return nullptr;
  *free = {worker.tid.load(), worker.started_ns.load(), AwaitedFutex(worker.tid.load())};
  return &*free;
}

ThreadLook LockWatch::look_at(Thread* thread) {
  if (thread == nullptr) return {};
  const ThreadLook look = thread->awaited.look();
  if (!look.known) *thread = {};
  return look;
}

void LockWatch::look_at_operators(std::uintptr_t lock, std::optional<int> holder) {
  const int pid = current_pid();
  for (const metrics::WorkerCell& worker : segment_.known_workers()) {
    const std::uint32_t account = worker.account.load();
    const bool live = is_live(worker);
    const bool in_operator = account >= metrics::kOperatorAccount;
    const bool between_calls = account == static_cast<std::uint32_t>(metrics::WorkerState::idle);
    if ((!in_operator && !between_calls) || !live || worker.pid.load() != pid) continue;
    Thread* const thread = in_operator ? find_or_add(worker) : find(worker);
    if (thread != nullptr && in_operator) thread->last_operator = account;
    if (thread == nullptr || thread->last_operator == 0) continue;
    metrics::OperatorCell& cell =
        segment_.cells()[(thread->last_operator - metrics::kOperatorAccount) % kMaxCells];
    const ThreadLook look = look_at(thread);
    if (in_operator || is_at(look.futex, lock)) count(cell, worker, look, lock, holder);
  }
}

void LockWatch::look_at_loops(std::uintptr_t lock, std::optional<int> holder) {
  const int pid = current_pid();
  for (LoaderRecord& loader : segment_.known_loaders()) {
    metrics::SinkCell& sink = loader.sink;
    const std::uint32_t index = sink.worker.load();
    if (sink.active.load() == 0 || index == 0 || index > kMaxWorkers) continue;
    const metrics::WorkerCell& worker = segment_.workers()[index - 1];
    if (worker.pid.load() != pid ||
        worker.account.load() != static_cast<std::uint32_t>(metrics::WorkerState::computing))
      continue;
    const ThreadLook look = look_at(find_or_add(worker));
    count(sink, worker, look, lock, holder);
    if (look.runs) sink.running_samples.bump(1);
  }
}

}  // namespace headrace::profile
