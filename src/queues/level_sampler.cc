#include "headrace/queues/level_sampler.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/metrics/clock.h"
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
  Watched watched;
  bool running = false;
  int pid = profile::current_pid();

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
  if (!state.running) {
    // Signals belong to the user's threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([&state] {
        pthread_setname_np(pthread_self(), "headrace-levels");
        state.run();
      }).detach();
      state.running = true;
    } catch (...) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  if (state.running) state.watched.push_back(std::move(queue));
  return state.running;
} catch (...) {
  return false;
}

void LevelSampler::State::run() {
  for (;;) {
    Watched looked_at;
    {
      const std::scoped_lock lock(mutex);
      if (watched.empty()) {
        running = false;
        return;
      }
      looked_at.swap(watched);
    }
    // Without the lock: a queue's probe that is looked at holds its own, under which others come here.
    look_at_all(looked_at);
    {
      const std::scoped_lock lock(mutex);
      watched.insert(watched.end(), std::make_move_iterator(looked_at.begin()),
                     std::make_move_iterator(looked_at.end()));
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace headrace::queues
