#include "headrace/pipeline/worker_group.h"

#include <pthread.h>
#include <unistd.h>

#include <string>
#include <system_error>

#include "headrace/profile/background_thread.h"
#include "headrace/profile/process_identity.h"

namespace headrace::pipeline {
namespace {

void name_thread(const std::string& name) noexcept {
  constexpr std::size_t kMax = 15;  // the kernel's limit
  pthread_setname_np(pthread_self(), name.substr(0, kMax).c_str());
}

}  // namespace

WorkerGroup::WorkerGroup(Operator& op) : operator_(op), wanted_(op.settings().workers) {}

WorkerGroup::~WorkerGroup() {
  {
    const std::scoped_lock lock(mutex_);
    dismissed_ = true;
  }
  changed_.notify_all();
  for (const auto& member : members_) {
    if (member->thread.joinable()) member->thread.join();
  }
}

void WorkerGroup::begin(StopState& stop) {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = &stop;
    input_ended_ = false;
    start_missing();
  }
  changed_.notify_all();
}

void WorkerGroup::resize(int workers) {
  if (workers < 1 || workers > kMaxWorkers) {
    throw UsageError("'" + operator_.name() + "': workers is 1 to " + std::to_string(kMaxWorkers) + ", not " +
                     std::to_string(workers));
  }
  if (operator_.settings().serial && workers != 1) {
    throw UsageError("'" + operator_.name() + "' is a " + operator_.settings().kind.text() +
                     ", which runs in one worker");
  }
  if (operator_.settings().fixed_workers && workers != operator_.settings().workers) {
    throw UsageError("'" + operator_.name() + "' is a " + operator_.settings().kind.text() + " whose " +
                     std::to_string(operator_.settings().workers) +
                     " workers each make their part of the items; build it anew with another number");
  }
  {
    const std::scoped_lock lock(mutex_);
    wanted_.store(workers, std::memory_order_relaxed);
    if (stop_ != nullptr && !input_ended_) start_missing();
  }
  changed_.notify_all();
}

// With the lock held. Everybody who is to work in this pass counts as working from now on: the pass is not
// over before a thread that was only just started has looked.
void WorkerGroup::start_missing() {
  const auto wanted = static_cast<std::size_t>(wanted_.load(std::memory_order_relaxed));
  for (std::size_t index = 0; index < wanted; ++index) {
    if (index == members_.size()) {
      auto member = std::make_unique<Member>();
      const profile::SignalsBlocked blocked;
      try {
        member->thread = std::thread([this, index] { live(index); });
      } catch (const std::system_error& error) {
        throw Error("'" + operator_.name() + "': no thread for worker " + std::to_string(index + 1) + " of " +
                    std::to_string(wanted) + " (" + error.code().message() + "); ask for fewer workers");
      }
      members_.push_back(std::move(member));
    }
    Member& member = *members_[index];
    if (member.working) continue;
    member.working = true;
    ++working_;
  }
}

void WorkerGroup::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return working_ == 0; });
  stop_ = nullptr;
}

void WorkerGroup::live(std::size_t index) {
  name_thread(operator_.name());
  const auto& make = operator_.settings().hooks;
  const std::unique_ptr<WaitHooks> hooks = make ? make() : std::make_unique<WaitHooks>();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return dismissed_ || (index < members_.size() && members_[index]->working); });
    if (dismissed_) return;
    serve(index, lock, *hooks);
  }
}

void WorkerGroup::serve(std::size_t index, std::unique_lock<std::mutex>& lock, WaitHooks& hooks) {
  StopState& stop = *stop_;
  const int pid = profile::current_pid();
  lock.unlock();
  hooks.enter();
  WorkerSlot slot{static_cast<int>(index), hooks, stop, wanted_};
  bool ended = false;
  try {
    ended = operator_.work(slot);
  } catch (...) {
    stop.fail(std::current_exception());  // no memory for an item, say
  }
  // The body forked, and this is the child: its other threads are gone, and with them the pipeline.
  if (pid != profile::current_pid()) _exit(0);
  hooks.leave();
  lock.lock();
  Member& member = *members_[index];
  input_ended_ = input_ended_ || ended || stop.stopped();
  member.working = false;
  --working_;
  // Asked for again between its last look and now.
  if (!input_ended_ && static_cast<int>(index) < wanted_.load(std::memory_order_relaxed)) {
    member.working = true;
    ++working_;
    return;
  }
  if (working_ > 0) return;
  // With the lock held: whoever waits for the group may open the next pass's queue as soon as it is let go.
  operator_.close_output();
  changed_.notify_all();
}

}  // namespace headrace::pipeline
