#include "recording/lock_search.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include "headrace/metrics/clock.h"
#include "headrace/profile/awaited_futex.h"
#include "headrace/profile/background_thread.h"
#include "interpreter_lock.h"

namespace headrace::python {
namespace {

/// The lock is held that long at most to find where others wait for it; 0.2 ms are usual.
constexpr std::int64_t kLongestSearchNs = 3'000'000;

/// Two members of CPython's lock, before the condition variable on which threads wait. Source: `struct
/// _gil_runtime_state`, the same from 3.10 to 3.14.
struct Holder {
  std::uintptr_t state;  ///< PyThreadState of the thread that holds it, or held it last
  int held;
};
/// From there to the futex at most: two words, and the condition variable's 48 bytes.
constexpr std::uintptr_t kHolderToFutex = 80;

std::atomic<const Holder*> holder_at{nullptr};

/// The thread that waits for the lock, or has waited for it, in the last search; 0: none since it was
/// awaited.
std::atomic<int> searcher{0};
constexpr int kStarting = -1;

/// Memory of this process that may be gone by now.
template <class Value>
std::optional<Value> read_own(std::uintptr_t from) noexcept {
  Value value;
  const iovec here{&value, sizeof(value)};
  const iovec there{reinterpret_cast<void*>(from), sizeof(value)};
  const ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
  return got == sizeof(value) ? std::optional(value) : std::nullopt;
}

/// Called by the thread that holds the lock.
const Holder* holder_before(std::uintptr_t futex) noexcept {
  const auto self = reinterpret_cast<std::uintptr_t>(PyThreadState_Get());
  const std::uintptr_t last = futex / sizeof(self) * sizeof(self);
  for (std::uintptr_t at = last - kHolderToFutex; at < last; at += sizeof(self)) {
    const auto holder = read_own<Holder>(at);
    if (holder && holder->state == self && holder->held == 1) return reinterpret_cast<const Holder*>(at);
  }
  return nullptr;
}

}  // namespace

std::int64_t wait_for_interpreter_lock() {
  if (interpreter_is_ending()) return -1;
  const std::int64_t asked = metrics::Clock::now_ns();
  const LockTaken taken;
  return metrics::Clock::now_ns() - asked;
}

std::uintptr_t find_interpreter_lock() {
  if (interpreter_is_ending()) return 0;
  await_end_of_lock_search();
  const auto tid = std::make_shared<std::atomic<int>>(0);
  std::uintptr_t found = 0;
  try {
    const LockTaken taken;
    searcher.store(kStarting);
    // Not joined: at the interpreter's end it would never return.
    std::thread([tid] {
      tid->store(static_cast<int>(syscall(SYS_gettid)));
      searcher.store(tid->load());
      if (!interpreter_is_ending()) const LockTaken wanted;
    }).detach();
    // Two looks that agree: a thread on its way to the lock may wait for something else for a moment.
    const std::int64_t until = metrics::Clock::now_ns() + kLongestSearchNs;
    std::uintptr_t before = 0;
    std::optional<profile::AwaitedFutex> awaited;
    while (found == 0 && metrics::Clock::now_ns() < until) {
      std::this_thread::sleep_for(std::chrono::microseconds(30));
      if (tid->load() == 0) continue;
      if (!awaited) awaited.emplace(tid->load());
      const std::uintptr_t now = awaited->look().futex;
      if (now != 0 && now == before) found = now;
      before = now;
    }
    if (found != 0) holder_at.store(holder_before(found));
  } catch (const std::system_error&) {
    searcher.store(0);
    return 0;  // no thread can be started
  }
  return found;
}

void await_end_of_lock_search() noexcept {
  constexpr std::int64_t kMaxStartNs = 100'000'000;
  const std::int64_t until = metrics::Clock::now_ns() + kMaxStartNs;
  while (searcher.load() == kStarting && metrics::Clock::now_ns() < until) std::this_thread::yield();
  if (const int tid = searcher.exchange(0); tid > 0) profile::await_thread_end(tid);
}

std::optional<int> holder_of_interpreter_lock() noexcept {
#if PY_VERSION_HEX >= 0x030B0000
  const Holder* const holder = holder_at.load();
  if (holder == nullptr) return std::nullopt;
  if (__atomic_load_n(&holder->held, __ATOMIC_RELAXED) == 0) return 0;
  const std::uintptr_t state = __atomic_load_n(&holder->state, __ATOMIC_RELAXED);
  const auto tid =
      read_own<decltype(PyThreadState::native_thread_id)>(state + offsetof(PyThreadState, native_thread_id));
  if (!tid) return std::nullopt;  // the thread has just ended, or the kernel does not allow it
  return static_cast<int>(*tid);
#else
  return std::nullopt;
#endif
}

}  // namespace headrace::python
