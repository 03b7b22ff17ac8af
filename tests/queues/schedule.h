// Runs threads one at a time, in an order drawn from a seed: a model of what a scheduler may do.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "headrace/queues/futex_word.h"

namespace headrace::queues {

/// Every `step` of a thread is a place at which another one may go on instead. The threads see each other's
/// writes in the order in which they ran (the model is of schedules, not of memory orders).
class Schedule {
 public:
  explicit Schedule(unsigned seed) : random_(seed) {}

  void add(std::function<void()> body) { bodies_.push_back(std::move(body)); }

  /// Runs all of them to their ends. False when those that were left all slept without a deadline: they are
  /// then woken as by a signal, and have to end by asking `stuck`.
  bool run() {
    states_.assign(bodies_.size(), State::runnable);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < bodies_.size(); ++i) {
      threads.emplace_back([this, i] {
        here() = {this, i};
        {
          std::unique_lock lock(mutex_);
          turn_.wait(lock, [&] { return running_ == i; });
        }
        bodies_[i]();
        std::unique_lock lock(mutex_);
        states_[i] = State::ended;
        pass_on();
      });
    }
    {
      const std::scoped_lock lock(mutex_);
      pass_on();
    }
    for (auto& thread : threads) thread.join();
    return !stuck_;
  }

  /// Of the calling thread's schedule.
  static void step() { here().schedule->give_way(State::runnable, nullptr); }
  static bool stuck() { return here().schedule->stuck_; }
  static unsigned draw(unsigned below) {
    return std::uniform_int_distribution<unsigned>(0, below - 1)(here().schedule->random_);
  }
  static Sleep sleep(const void* word, bool timed) {
    return here().schedule->give_way(timed ? State::sleeps_timed : State::sleeps, word);
  }
  static void wake(const void* word, int most) { here().schedule->wake_sleepers(word, most); }

 private:
  enum class State { runnable, sleeps, sleeps_timed, ended };
  struct Here {
    Schedule* schedule = nullptr;
    std::size_t thread = 0;
  };
  static Here& here() {
    static thread_local Here here;
    return here;
  }

  Sleep give_way(State state, const void* word) {
    const std::size_t me = here().thread;
    std::unique_lock lock(mutex_);
    if (stuck_) return Sleep::interrupted;
    words_.resize(states_.size());
    states_[me] = state;
    words_[me] = word;
    pass_on();
    turn_.wait(lock, [&] { return running_ == me; });
    // Still asleep and yet chosen: the deadline passed, or everybody slept for good.
    const bool woken = states_[me] == State::runnable;
    states_[me] = State::runnable;
    if (woken) return Sleep::woken;
    return stuck_ ? Sleep::interrupted : Sleep::timed_out;
  }

  void pass_on() {
    std::vector<std::size_t> ready;
    std::vector<std::size_t> asleep;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (states_[i] == State::runnable || states_[i] == State::sleeps_timed) ready.push_back(i);
      if (states_[i] == State::sleeps) asleep.push_back(i);
    }
    if (ready.empty()) {
      if (asleep.empty()) return;  // all ended
      stuck_ = true;
      ready = asleep;
    }
    running_ = ready[std::uniform_int_distribution<std::size_t>(0, ready.size() - 1)(random_)];
    turn_.notify_all();
  }

  void wake_sleepers(const void* word, int most) {
    const std::scoped_lock lock(mutex_);
    words_.resize(states_.size());
    std::vector<std::size_t> sleepers;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const bool sleeps = states_[i] == State::sleeps || states_[i] == State::sleeps_timed;
      if (sleeps && words_[i] == word) sleepers.push_back(i);
    }
    for (; most > 0 && !sleepers.empty(); --most) {
      const std::size_t at = std::uniform_int_distribution<std::size_t>(0, sleepers.size() - 1)(random_);
      states_[sleepers[at]] = State::runnable;
      sleepers.erase(sleepers.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  std::mt19937 random_;
  std::vector<std::function<void()>> bodies_;
  std::mutex mutex_;
  std::condition_variable turn_;
  std::size_t running_ = static_cast<std::size_t>(-1);
  std::vector<State> states_;
  std::vector<const void*> words_;
  bool stuck_ = false;
};

/// What FutexWord offers, one step of the calling thread's schedule each.
class ScheduledWord {
 public:
  std::uint64_t load() const noexcept {
    Schedule::step();
    return value_;
  }
  std::uint64_t fetch_add(std::uint64_t by) noexcept {
    Schedule::step();
    const std::uint64_t before = value_;
    value_ += by;
    return before;
  }
  bool compare_exchange(std::uint64_t& expected, std::uint64_t desired) noexcept {
    Schedule::step();
    const bool spurious = Schedule::draw(8) == 0;  // as a weak one may
    if (value_ != expected || spurious) {
      expected = value_;
      return false;
    }
    value_ = desired;
    return true;
  }
  void fence() const noexcept {}
  Sleep sleep_while(std::uint32_t low, FutexWord::Clock::time_point deadline) noexcept {
    Schedule::step();
    // The kernel compares and goes to sleep in one.
    if (static_cast<std::uint32_t>(value_) != low) return Sleep::changed;
    return Schedule::sleep(this, deadline != FutexWord::Clock::time_point::max());
  }
  void wake(int most) noexcept {
    Schedule::step();
    Schedule::wake(this, most);
  }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace headrace::queues
