#include "headrace/queues/level_sampler.h"

#include <chrono>
#include <condition_variable>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "headrace/metrics/clock.h"
#include "headrace/profile/background_thread.h"
#include "headrace/profile/process_identity.h"

namespace headrace::queues {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(1);

using Watched = std::vector<std::weak_ptr<PacedProbe>>;

void look_at_all(Watched& watched) {
  const std::int64_t now = metrics::Clock::now_ns();
  std::erase_if(watched, [now](const std::weak_ptr<PacedProbe>& weak) {
    const std::shared_ptr<PacedProbe> queue = weak.lock();
    return queue == nullptr || !queue->look(now);
  });
}

}  // namespace

struct LevelSampler::State {
  std::mutex mutex;
  std::condition_variable wake;
  Watched watched;
  bool running = false;  ///< false from the thread's last look on
  profile::BackgroundThread thread;
  int forks = 0;  ///< under way in this process; the thread does not run meanwhile
  int pid = profile::current_pid();

  /// Starts the thread. False if that fails. With the lock.
  bool start();
  void run();
};

LevelSampler& LevelSampler::instance() {
  static LevelSampler& sampler = *new LevelSampler;
  return sampler;
}

LevelSampler::LevelSampler() : state_(new State) {}

LevelSampler::State& LevelSampler::state() {
  State* found = state_.load(std::memory_order_acquire);  // who put it there has filled it in
  if (found->pid == profile::current_pid()) return *found;
  auto own = std::make_unique<State>();
  if (state_.compare_exchange_strong(found, own.get(), std::memory_order_acq_rel)) return *own.release();
  return *found;  // another thread of the child was faster
}

bool LevelSampler::watch(std::weak_ptr<PacedProbe> queue) noexcept try {
  State& state = this->state();
  const std::scoped_lock lock(state.mutex);
  if (!state.running && state.forks == 0 && !state.start()) return false;
  state.watched.push_back(std::move(queue));
  return true;
} catch (...) {
  return false;
}

bool LevelSampler::State::start() {
  thread.join();  // an earlier one, which found no fast queue any more
  running = thread.start("headrace-levels", [this] { run(); });
  return running;
}

void LevelSampler::before_fork() noexcept {
  State* state = state_.load(std::memory_order_acquire);
  if (state->pid != profile::current_pid()) return;
  profile::BackgroundThread thread;
  {
    const std::scoped_lock lock(state->mutex);
    ++state->forks;
    thread = std::move(state->thread);
    state->wake.notify_all();
  }
  thread.join();
}

void LevelSampler::after_fork_in_parent() noexcept {
  State* state = state_.load(std::memory_order_acquire);
  if (state->pid != profile::current_pid()) return;
  const std::scoped_lock lock(state->mutex);
  if (state->forks == 0) return;
  --state->forks;
  if (state->forks == 0 && !state->watched.empty()) state->start();
}

void LevelSampler::State::run() {
  std::unique_lock lock(mutex);
  while (!watched.empty() && forks == 0) {
    Watched looked_at;
    looked_at.swap(watched);
    // Without the lock: a queue's probe that is looked at holds its own, under which others come here.
    lock.unlock();
    look_at_all(looked_at);
    lock.lock();
    watched.insert(watched.end(), std::make_move_iterator(looked_at.begin()),
                   std::make_move_iterator(looked_at.end()));
    wake.wait_for(lock, kBetweenLooks, [this] { return forks > 0; });
  }
  running = false;
  if (forks == 0) thread.leave();  // else a fork has it, and waits for it
}

}  // namespace headrace::queues
