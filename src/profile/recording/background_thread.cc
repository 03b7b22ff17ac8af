#include "headrace/profile/background_thread.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "headrace/profile/process_identity.h"

namespace headrace::profile {

void await_thread_end(int tid) noexcept {
  constexpr auto kMaxWait = std::chrono::milliseconds(100);
  const auto until = std::chrono::steady_clock::now() + kMaxWait;
  // Signal 0 is sent to nobody: the call only says whether the thread exists.
  while (syscall(SYS_tgkill, getpid(), tid, 0) == 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
}

bool BackgroundThread::start(const char* name, std::function<void()> body) noexcept {
  const SignalsBlocked blocked;
  try {
    auto tid = std::make_shared<std::atomic<int>>(0);
    thread_ = std::thread([name, tid, body = std::move(body)] {
      pthread_setname_np(pthread_self(), name);
      tid->store(current_tid());
      body();
    });
    tid_ = std::move(tid);
    return true;
  } catch (...) {
    return false;
  }
}

void BackgroundThread::join() noexcept {
  if (thread_.joinable()) thread_.join();
  if (tid_ != nullptr) await_thread_end(tid_->load());
  tid_.reset();
}

void BackgroundThread::leave() noexcept {
  if (thread_.joinable()) thread_.detach();
}

}  // namespace headrace::profile
