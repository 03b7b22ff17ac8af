#include "headrace/profile/current.h"

#include <pthread.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <vector>

#include "headrace/profile/run_folder.h"
#include "headrace/profile/sampler.h"

namespace headrace::profile {

std::atomic<std::uint64_t> CurrentSession::generation_{1};
std::atomic<bool> CurrentSession::enabled_{true};

namespace {

/// Never destroyed: threads may still record while static objects are torn down.
struct State {
  std::mutex mutex;
  std::vector<std::shared_ptr<Session>> pushed;
  std::shared_ptr<Session> current;
  std::vector<std::weak_ptr<Session>> all;
  std::vector<std::shared_ptr<Session>> held_for_fork;
};
State& state() {
  static State& instance = *new State;
  return instance;
}

std::shared_ptr<Session> current_of(State& state) {
  return state.pushed.empty() ? state.current : state.pushed.back();
}

std::shared_ptr<Session> open_in(State& state, const SessionOptions& options) {
  auto session = Session::open(options);
  std::erase_if(state.all, [](const auto& weak) { return weak.expired(); });
  state.all.push_back(session);
  if (!Sampler::instance().add(session)) session->tell(Sampler::kNoThread);
  return session;
}

void before_fork() {
  state().mutex.lock();
  const auto hold = [](const std::shared_ptr<Session>& session) {
    auto& held = state().held_for_fork;
    if (session != nullptr && std::find(held.begin(), held.end(), session) == held.end())
      held.push_back(session);
  };
  for (const auto& weak : state().all) hold(weak.lock());
  // Sessions that were attached are not in the list.
  for (const auto& session : state().pushed) hold(session);
  hold(state().current);
  for (const auto& session : state().held_for_fork) session->before_fork();
}
void after_fork_in_parent() {
  std::vector<std::shared_ptr<Session>> held;
  held.swap(state().held_for_fork);
  for (const auto& session : held) session->after_fork_in_parent();
  state().mutex.unlock();
}
/// The child records into the parent's runs as one more process of them; it owns none.
void after_fork_in_child(std::atomic<std::uint64_t>& generation) {
  for (const auto& session : state().held_for_fork) session->after_fork_in_child();
  state().held_for_fork.clear();
  state().mutex.unlock();
  generation.fetch_add(1);
}

std::atomic<std::uint64_t>* generation_for_fork = nullptr;

void watch_forks(std::atomic<std::uint64_t>& generation) {
  static std::once_flag once;
  std::call_once(once, [&] {
    generation_for_fork = &generation;
    pthread_atfork(before_fork, after_fork_in_parent, [] { after_fork_in_child(*generation_for_fork); });
  });
}

}  // namespace

std::shared_ptr<Session> CurrentSession::get() noexcept try {
  if (!enabled()) return nullptr;
  watch_forks(generation_);
  const std::scoped_lock lock(state().mutex);
  if (auto session = current_of(state())) return session;
  state().current = open_in(state(), {"", default_rank()});
  generation_.fetch_add(1, std::memory_order_release);
  return state().current;
} catch (...) {
  return nullptr;
}

std::shared_ptr<Session> CurrentSession::peek() noexcept {
  const std::scoped_lock lock(state().mutex);
  return current_of(state());
}

void CurrentSession::set(std::shared_ptr<Session> session) noexcept {
  watch_forks(generation_);
  const std::scoped_lock lock(state().mutex);
  if (state().current == session) return;
  state().current = std::move(session);
  generation_.fetch_add(1, std::memory_order_release);
}

void CurrentSession::push(std::shared_ptr<Session> session) {
  watch_forks(generation_);
  const std::scoped_lock lock(state().mutex);
  state().pushed.push_back(std::move(session));
  generation_.fetch_add(1, std::memory_order_release);
}

void CurrentSession::pop(const Session& session) noexcept {
  const std::scoped_lock lock(state().mutex);
  auto& pushed = state().pushed;
  const auto found =
      std::find_if(pushed.rbegin(), pushed.rend(), [&](const auto& s) { return s.get() == &session; });
  if (found == pushed.rend()) return;
  pushed.erase(std::next(found).base());
  generation_.fetch_add(1, std::memory_order_release);
}

std::shared_ptr<Session> CurrentSession::for_run(const std::string& run, int rank, bool unnamed) {
  watch_forks(generation_);
  const std::scoped_lock lock(state().mutex);
  std::shared_ptr<Session> session = current_of(state());
  if (run.empty()) {
    if (session == nullptr) {
      session = state().current = open_in(state(), {"", rank});
      generation_.fetch_add(1, std::memory_order_release);
    }
    if (!session->has_run()) {
      // Absolute: a program that changes its folder later still has one run.
      std::error_code error;
      const std::filesystem::path folder = std::filesystem::absolute(default_run_folder(), error);
      session->bind_run(error ? default_run_folder() : folder.string(), default_run_is_unnamed());
    }
    return session;
  }
  // One that is closed may still be held by a thread that has not looked since: a new one begins beside it.
  const auto fits = [&](const std::shared_ptr<Session>& s) {
    return s->owner() && !s->closed() && s->run() == run && s->rank() == rank;
  };
  if (session != nullptr && fits(session)) return session;
  for (const auto& weak : state().all) {
    if (const auto other = weak.lock(); other != nullptr && fits(other)) {
      session = other;
      break;
    }
  }
  if (session == nullptr || !fits(session)) {
    const bool implicit = session != nullptr && state().pushed.empty() && session->owner() &&
                          !session->closed() && !session->has_run() && !session->has_loaders() &&
                          session->rank() == rank;
    if (implicit) {
      session->bind_run(run, unnamed);
      return session;
    }
    session = open_in(state(), {run, rank, unnamed});
  }
  state().current = session;
  generation_.fetch_add(1, std::memory_order_release);
  return session;
}

void CurrentSession::disable() noexcept {
  enabled_.store(false);
  generation_.fetch_add(1, std::memory_order_release);
}

std::vector<std::string> CurrentSession::close_all() noexcept try {
  Sampler::instance().stop();
  std::vector<std::shared_ptr<Session>> sessions;
  {
    const std::scoped_lock lock(state().mutex);
    for (const auto& weak : state().all) {
      if (auto session = weak.lock()) sessions.push_back(std::move(session));
    }
  }
  std::vector<std::string> messages;
  for (const auto& session : sessions) {
    session->close();
    for (std::string& line : session->take_messages()) messages.push_back(std::move(line));
  }
  return messages;
} catch (...) {
  return {};
}

}  // namespace headrace::profile
