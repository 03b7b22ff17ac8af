#include "interpreter_lock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include "headrace/metrics/clock.h"
#include "headrace/profile/awaited_futex.h"

namespace headrace::python {
namespace {

/// The lock is held that long at most to find where others wait for it; 0.2 ms are usual.
constexpr std::int64_t kLongestSearchNs = 3'000'000;

}  // namespace

bool interpreter_is_ending() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() == 0 || Py_IsFinalizing() != 0;
#else
  return Py_IsInitialized() == 0 || _Py_IsFinalizing() != 0;
#endif
}

void park() noexcept {
  for (;;) pause();
}

PyGILState_STATE take_lock() noexcept {
  if (PyGILState_Check() == 0 && interpreter_is_ending()) park();
  return calling_python([] { return PyGILState_Ensure(); });
}

void give_lock_back(PyGILState_STATE state) noexcept {
  calling_python([state] { PyGILState_Release(state); });
}

void take_lock_again(PyThreadState* thread) noexcept {
  calling_python([thread] { PyEval_RestoreThread(thread); });
}

std::int64_t wait_for_interpreter_lock() {
  if (interpreter_is_ending()) return -1;
  const std::int64_t asked = metrics::Clock::now_ns();
  const LockTaken taken;
  return metrics::Clock::now_ns() - asked;
}

std::uintptr_t find_interpreter_lock() {
  if (interpreter_is_ending()) return 0;
  const auto tid = std::make_shared<std::atomic<int>>(0);
  std::uintptr_t found = 0;
  try {
    const LockTaken taken;
    // Not joined: at the interpreter's end it would never return.
    std::thread([tid] {
      tid->store(static_cast<int>(syscall(SYS_gettid)));
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
  } catch (const std::system_error&) {
    return 0;  // no thread can be started
  }
  return found;
}

}  // namespace headrace::python
