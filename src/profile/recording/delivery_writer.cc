#include "headrace/profile/delivery_writer.h"

#include <algorithm>
#include <atomic>

#include "headrace/metrics/clock.h"
#include "headrace/profile/thread_context.h"

namespace headrace::profile {

using metrics::Clock;
using metrics::Delivery;
using metrics::WorkerState;

namespace {

constexpr auto kRelease = std::memory_order_release;

metrics::WorkerProbe* probe_here() noexcept {
  ThreadContext* context = ThreadContext::recording();
  return context == nullptr ? nullptr : &context->probe;
}

}  // namespace

std::shared_ptr<DeliveryWriter> DeliveryWriter::enter(const Identity& identity) noexcept try {
  ThreadContext* context = ThreadContext::recording();
  if (context == nullptr) return nullptr;
  const std::shared_ptr<Session> session = CurrentSession::peek();
  if (session == nullptr || session.get() != context->session()) return nullptr;
  metrics::WorkerCell* cell = context->probe.cell();
  metrics::DeliveryRing* ring = &session->segment().deliveries()[cell - session->segment().workers()];
  cell->number.store(identity.number);
  cell->siblings.store(identity.siblings);
  cell->pass.store(identity.pass);
  cell->loader.store(static_cast<std::uint32_t>(identity.loader + 1));
  return std::shared_ptr<DeliveryWriter>(new DeliveryWriter(session, ring));
} catch (...) {
  return nullptr;
}

void DeliveryWriter::waiting() noexcept {
  if (metrics::WorkerProbe* probe = probe_here())
    probe->rest_in(nullptr, exhausted_ ? WorkerState::idle : WorkerState::blocked_out, Clock::now_ns());
}

// Busy time of this worker's operators when the batch was begun.
void DeliveryWriter::note_busy() noexcept {
  busy_count_ = 0;
  const ThreadContext& context = ThreadContext::local();
  for (metrics::OperatorCell* cell : context.probe.owned()) {
    if (busy_count_ == kMaxOperators) return;
    busy_[busy_count_++] = {cell, cell->busy_ns.load()};
  }
}

void DeliveryWriter::took(std::int64_t batch) noexcept {
  exhausted_ = false;
  const std::int64_t now = Clock::now_ns();
  if (metrics::WorkerProbe* probe = probe_here()) probe->rest_in(nullptr, WorkerState::idle, now);
  note_busy();
  const std::uint64_t number = ring_->taken.load(std::memory_order_relaxed);
  Delivery& delivery = ring_->at(number);
  delivery.batch.store(batch);
  delivery.taken_ns.store(now);
  delivery.fetched_ns.store(0, std::memory_order_relaxed);
  delivery.pickled_ns.store(0, std::memory_order_relaxed);
  delivery.sent_ns.store(0);
  open_ = &delivery;
  // Release: a reader that sees the new count sees what was written about its batch.
  ring_->taken.store(number + 1, kRelease);
}

void DeliveryWriter::took_nothing() noexcept {
  exhausted_ = false;
  open_ = nullptr;
  if (metrics::WorkerProbe* probe = probe_here()) probe->rest_in(nullptr, WorkerState::idle, Clock::now_ns());
}

void DeliveryWriter::write_parts(Delivery& delivery) const noexcept {
  std::array<std::pair<std::int64_t, std::uint32_t>, kMaxOperators> parts{};
  std::size_t count = 0;
  const ThreadContext& context = ThreadContext::local();
  for (metrics::OperatorCell* cell : context.probe.owned()) {
    if (count == kMaxOperators) break;
    const auto* known = std::find_if(busy_.begin(), busy_.begin() + static_cast<std::ptrdiff_t>(busy_count_),
                                     [cell](const Busy& one) { return one.cell == cell; });
    const bool was_known = known != busy_.begin() + static_cast<std::ptrdiff_t>(busy_count_);
    const std::int64_t spent = cell->busy_ns.load() - (was_known ? known->ns : 0);
    if (spent > 0) parts[count++] = {spent, cell->operator_id.load() + 1};
  }
  const std::size_t kept = std::min(count, Delivery::kParts);
  std::partial_sort(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(kept),
                    parts.begin() + static_cast<std::ptrdiff_t>(count), std::greater<>());
  for (std::size_t i = 0; i < Delivery::kParts; ++i) {
    delivery.parts[i].op.store(i < kept ? parts[i].second : 0);
    delivery.parts[i].ns.store(i < kept ? parts[i].first : 0);
  }
}

void DeliveryWriter::made(std::int64_t batch, std::int64_t tensors) noexcept try {
  Delivery* delivery = open_ != nullptr && open_->batch.load() == batch ? open_ : nullptr;
  open_ = nullptr;
  if (delivery != nullptr) {
    write_parts(*delivery);
    delivery->tensors.store(tensors);
    delivery->fetched_ns.store(Clock::now_ns(), kRelease);
  }
  const std::scoped_lock lock(mutex_);
  outbox_.push_back(delivery);
} catch (...) {
  // No memory for the outbox: what this batch's hand-off cost stays unknown.
}

void DeliveryWriter::made_nothing() noexcept try {
  const std::scoped_lock lock(mutex_);
  outbox_.push_back(nullptr);
} catch (...) {
}

void DeliveryWriter::sending(std::int64_t message_bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  if (outbox_.empty() || outbox_.front() == nullptr) return;
  Delivery& delivery = *outbox_.front();
  delivery.message_bytes.store(message_bytes);
  const bool reads_cpu = sender_cpu_ns_ >= 0;
  delivery.pickle_cpu_ns.store(reads_cpu ? std::max<std::int64_t>(0, Clock::thread_cpu_ns() - sender_cpu_ns_)
                                         : -1);
  delivery.pickled_ns.store(Clock::now_ns(), kRelease);
}

void DeliveryWriter::sent() noexcept {
  const std::scoped_lock lock(mutex_);
  const std::int64_t now = Clock::now_ns();
  sender_cpu_ns_ = sampling_.take(now, now - sent_ns_) ? Clock::thread_cpu_ns() : -1;
  sent_ns_ = now;
  if (outbox_.empty()) return;
  if (outbox_.front() != nullptr) outbox_.front()->sent_ns.store(now);
  outbox_.pop_front();
}

// A worker process ends without running its threads' destructors.
void DeliveryWriter::finish() noexcept {
  if (metrics::WorkerProbe* probe = probe_here()) probe->finish(Clock::now_ns());
}

}  // namespace headrace::profile
