#include "headrace/queues/level_sampler.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <iterator>
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

bool LevelSampler::watch(std::weak_ptr<PacedProbe> queue) noexcept try {
  // A forked child: the parent's thread does not exist here, its state is left behind.
  if (state_->pid != profile::current_pid()) state_ = new State;
  const std::scoped_lock lock(state_->mutex);
  if (!state_->running) {
    // Signals belong to the user's threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([state = state_] {
        pthread_setname_np(pthread_self(), "headrace-levels");
        state->run();
      }).detach();
      state_->running = true;
    } catch (...) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  if (state_->running) state_->watched.push_back(std::move(queue));
  return state_->running;
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
