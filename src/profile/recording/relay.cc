#include "headrace/profile/relay.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace headrace::profile {

using metrics::Clock;
using metrics::WaitCharges;

namespace {

/// Waiting batches whose charges are kept; a queue that is longer loses the oldest ones.
constexpr std::size_t kMaxWaiting = 4096;

}  // namespace

Relay::Relay(std::shared_ptr<LoaderHandle> loader, std::shared_ptr<LoopRecorder> recorder)
    : loader_(std::move(loader)), recorder_(std::move(recorder)) {}

void Relay::look_at_thread() noexcept {
  thread_ = ::syscall(SYS_gettid) == ::getpid() ? Thread::main : Thread::started;
}

void Relay::take_over() noexcept {
  recorder_->leave();
  active_.store(true, std::memory_order_release);
}

void Relay::begin_feed() noexcept {
  if (OperatorHandle* source = loader_->source()) source->begin();
}

void Relay::end_feed(bool delivered, bool failed) noexcept {
  if (OperatorHandle* source = loader_->source())
    delivered || failed ? source->end(failed) : source->abandon();
  if (delivered) {
    fed_.fetch_add(1, std::memory_order_relaxed);
  } else {
    exhausted();
  }
}

void Relay::followed(const WaitCharges& charges) noexcept try {
  const std::scoped_lock lock(mutex_);
  follows_ = true;
  charges_.push_back(charges);
  if (charges_.size() > kMaxWaiting) charges_.pop_front();
} catch (...) {
  // No memory: this batch's wait is charged to nothing.
}

void Relay::begin_wait(std::int64_t level) noexcept {
  // The first batch was recorded by the thread that feeds.
  if (waiting_ || ended_ || taken_.load(std::memory_order_relaxed) == 0) return;
  recorder_->begin_wait();
  if (exhausted_.load(std::memory_order_acquire) && level == 0 && taken_.load() >= fed_.load()) {
    end_loop();
    return;
  }
  waiting_ = true;
  ready_ = level > 0;
  wait_began_ns_ = Clock::now_ns();
}

void Relay::end_wait() noexcept {
  if (!waiting_) return;
  waiting_ = false;
  if (exhausted_.load(std::memory_order_acquire) && taken_.load() > fed_.load()) {
    end_loop();  // the item is the mark after the last batch
    return;
  }
  bool follows = false;
  {
    const std::scoped_lock lock(mutex_);
    follows = follows_;
  }
  if (follows) {
    recorder_->end_wait(true, false, charges_of_next(Clock::now_ns() - wait_began_ns_));
  } else {
    recorder_->end_wait(true, false, ready_ ? 1 : 0);
  }
}

// The feeding thread may have waited for longer than the loop does: the shares stay as they are.
WaitCharges Relay::charges_of_next(std::int64_t wait_ns) noexcept {
  WaitCharges charges;
  {
    const std::scoped_lock lock(mutex_);
    if (!charges_.empty()) {
      charges = charges_.front();
      charges_.pop_front();
    }
  }
  charges.ready = ready_;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < charges.count; ++i) sum += charges.charges[i].ns;
  if (sum > wait_ns) {
    const double part = static_cast<double>(wait_ns) / static_cast<double>(sum);
    for (std::size_t i = 0; i < charges.count; ++i) {
      charges.charges[i].ns = static_cast<std::int64_t>(static_cast<double>(charges.charges[i].ns) * part);
    }
  }
  return charges;
}

void Relay::end_loop() noexcept {
  ended_ = true;
  recorder_->end_wait(false, false);
}

}  // namespace headrace::profile
