#include "headrace/queues/paced_probe.h"

#include <algorithm>
#include <utility>

#include "headrace/metrics/clock.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/session.h"
#include "headrace/profile/thread_context.h"
#include "headrace/queues/level_sampler.h"

namespace headrace::queues {

using metrics::Clock;
using profile::ThreadContext;

namespace {

/// The thread's count of what it moves over this queue; null before its first item.
metrics::WorkerEdge* edge_of(metrics::WorkerCell& worker, std::uint32_t queue, Side side) noexcept {
  for (metrics::WorkerEdge& edge : worker.edges) {
    if (edge.queue.load() == queue + 1 && (edge.is_put.load() != 0) == (side == Side::put)) return &edge;
  }
  return nullptr;
}

/// True if a call on this side ends an item of the thread's own loop.
bool ends_loop_item(ThreadContext& context, Side side) noexcept {
  return context.place() == metrics::Place::worker && (side == Side::put || !context.probe.puts_somewhere());
}

/// Items of the thread's own loop beside those that its probe counts itself.
void count(ThreadContext& context, metrics::OperatorCell& loop, std::uint64_t items,
           std::int64_t now) noexcept {
  loop.items.bump(items);
  if (context.session()->clock()->read(now).paused) return;
  loop.loop_items.bump(static_cast<std::int64_t>(items));
}

/// Items that found room (or an item) at once.
void add(metrics::LatencyHistogram& waits, std::uint64_t items) noexcept {
  waits.buckets[static_cast<std::size_t>(metrics::LatencyBuckets::index(0))].bump(items);
}

/// How far `counted` is ahead of `told`; 0 where whoever moved an item has told of it before it was counted.
std::uint64_t due(std::uint64_t counted, std::uint64_t told) noexcept {
  return counted > told ? counted - told : 0;
}

}  // namespace

PacedProbe::PacedProbe(std::string name, std::int64_t capacity, Limits limits, int loader)
    : recorded_capacity_(capacity),
      limits_(limits),
      pid_(profile::current_pid()),
      handle_(std::move(name), capacity, loader) {}

void PacedProbe::attach(QueueCounters source) {
  const std::scoped_lock lock(mutex_);
  source_ = source;
}

void PacedProbe::detach() noexcept {
  // In a forked child that ends by its parent's road: the lock may have been the parent's sampler's.
  if (pid_ != profile::current_pid()) return;
  const std::scoped_lock lock(mutex_);
  if (fast()) go_slow(Clock::now_ns());
  source_ = {};
}

/// The run keeps the capacity under which it met the queue, so levels of a queue whose capacity was changed
/// since are told by what they mean: full stays full, and what is not full is not.
std::int64_t PacedProbe::recorded_level(const Counts& counts) const noexcept {
  const auto level = std::max<std::int64_t>(0, static_cast<std::int64_t>(counts.puts - counts.gets));
  if (level >= counts.capacity) return recorded_capacity_;
  return std::min(level, recorded_capacity_ - 1);
}

void PacedProbe::tell(Side side, std::int64_t level, std::int64_t waited_ns, bool counts,
                      const char* loop_name) noexcept {
  if (side == Side::put) {
    handle_.put(level, waited_ns, counts, loop_name);
  } else {
    handle_.get(level, waited_ns, counts, loop_name);
  }
}

void PacedProbe::exact(Side side, std::int64_t waited_ns, const char* loop_name) noexcept {
  ThreadContext* context = ThreadContext::recording();
  if (context == nullptr) return;
  const bool was_fast = fast();
  const std::scoped_lock lock(mutex_);
  const std::int64_t level = recorded_level(source_.read(source_.queue));
  if (was_fast) ++(side == Side::put ? recorded_.puts : recorded_.gets);
  if (!was_fast || sample_is_open() || !known_to(*context, side, loop_name)) {
    if (sample_is_open()) open_sample_ = nullptr;
    tell(side, level, waited_ns, true, loop_name);
  } else {
    // Since the thread's last stamp many items went by: the time since then is the service time of none.
    tell(side, level, waited_ns, false, loop_name);
    const std::int64_t now = Clock::now_ns();
    metrics::QueueProbe probe = context->session()->queue_probe(static_cast<int>(id_.load()));
    if (side == Side::put) {
      probe.put(waited_ns, now, true);
    } else {
      probe.get(waited_ns, now, true);
    }
    edge_of(*context->probe.cell(), id_.load(std::memory_order_relaxed), side)->items.bump(1);
    metrics::OperatorCell* loop = context->probe.loop_cell();
    if (loop != nullptr && ends_loop_item(*context, side)) count(*context, *loop, 1, now);
  }
  if (!fast()) judge_pace(*context);
}

/// True when the thread has already reported to the run that it uses this queue, and in which loop.
bool PacedProbe::known_to(ThreadContext& context, Side side, const char* loop_name) const noexcept {
  if (context.session()->uid() != session_uid_.load(std::memory_order_relaxed)) return false;
  if (context.probe.loop_cell() == nullptr && loop_name != nullptr) return false;
  return edge_of(*context.probe.cell(), id_.load(std::memory_order_relaxed), side) != nullptr;
}

void PacedProbe::judge_pace(ThreadContext& context) noexcept {
  const std::uint64_t puts = source_.read(source_.queue).puts;
  if (puts - rate_puts_ < kItemsPerRate) return;
  const std::int64_t now = Clock::now_ns();
  const auto items = static_cast<double>(puts - rate_puts_);
  const auto lasted_s = static_cast<double>(now - rate_since_ns_) * 1e-9;
  rate_puts_ = puts;
  rate_since_ns_ = now;
  if (items < lasted_s * static_cast<double>(limits_.fast_items_per_s)) return;
  const int id = handle_.id_in(*context.session());
  if (id < 0) return;  // the run's table is full: nothing is recorded of this queue
  session_ = context.session()->weak_from_this();
  session_uid_.store(context.session()->uid(), std::memory_order_relaxed);
  id_.store(static_cast<std::uint32_t>(id), std::memory_order_relaxed);
  fast_.store(true, std::memory_order_relaxed);
  recorded_ = source_.read(source_.queue);  // everything was reported to the run until now
  if (!watched_) watched_ = LevelSampler::instance().watch(weak_from_this());
  if (!watched_) fast_.store(false, std::memory_order_relaxed);
}

void PacedProbe::sample(Side side, bool weighs, const char* loop_name) noexcept {
  ThreadContext* context = ThreadContext::recording();
  if (context == nullptr) return;
  if (context->session()->uid() != session_uid_.load(std::memory_order_relaxed)) {
    const std::scoped_lock lock(mutex_);
    if (fast()) go_slow(Clock::now_ns());
    return;
  }
  metrics::WorkerEdge* edge = edge_of(*context->probe.cell(), id_.load(std::memory_order_relaxed), side);
  metrics::OperatorCell* loop = context->probe.loop_cell();
  if (edge == nullptr || (loop == nullptr && loop_name != nullptr)) return exact(side, 0, loop_name);
  if (context->place() != metrics::Place::worker) {
    // A training loop's sink wants to know from which queue it took.
    exact(side, 0, loop_name);
    if (weighs) edge->items.bump(kSampleWeight - 1);
    return;
  }
  if (weighs) edge->items.bump(kSampleWeight);
  if (loop != nullptr && ends_loop_item(*context, side)) sample_loop(*context, *loop, weighs);
}

void PacedProbe::sample_loop(ThreadContext& context, metrics::OperatorCell& loop, bool weighs) noexcept {
  const std::int64_t now = Clock::now_ns();
  if (sample_is_open()) {
    open_sample_ = nullptr;
    context.probe.loop_item(now, true);
  }
  if (!weighs) return;
  // The loop's time so far was that of many items; that of the next one will be its own, and counts it then.
  context.probe.loop_item(now, false);
  open_sample_ = this;
  loop.sampled.store(1);
  count(context, loop, kSampleWeight - 1, now);
}

void PacedProbe::waiting(Side side) noexcept {
  handle_.waiting(side == Side::put ? metrics::WorkerState::blocked_out : metrics::WorkerState::blocked_in);
}

void PacedProbe::waited() noexcept { handle_.waited(); }

void PacedProbe::emptied() noexcept {
  const std::scoped_lock lock(mutex_);
  handle_.emptied();
}

bool PacedProbe::look(std::int64_t now) noexcept {
  const std::scoped_lock lock(mutex_);
  if (!fast()) return watched_ = false;
  const std::shared_ptr<profile::Session> session = session_.lock();
  if (session != nullptr) publish(*session, now);
  if (session != nullptr && now - rate_since_ns_ < kRateNs) return true;
  const auto items = static_cast<double>(recorded_.puts - rate_puts_);
  const auto lasted_s = static_cast<double>(now - rate_since_ns_) * 1e-9;
  rate_puts_ = recorded_.puts;
  rate_since_ns_ = now;
  if (session != nullptr && items >= lasted_s * static_cast<double>(limits_.slow_items_per_s)) return true;
  fast_.store(false, std::memory_order_relaxed);
  return watched_ = false;
}

void PacedProbe::publish(profile::Session& session, std::int64_t now) noexcept {
  if (source_.read == nullptr) return;
  const auto id = static_cast<int>(id_.load(std::memory_order_relaxed));
  const Counts counts = source_.read(source_.queue);
  session.queue_probe(id).changed(recorded_level(counts), now);
  metrics::QueueCell& cell = session.segment().queues()[id].cell;
  cell.sampled.store(1);
  const std::uint64_t puts = due(counts.puts, recorded_.puts);
  const std::uint64_t gets = due(counts.gets, recorded_.gets);
  cell.puts.bump(puts);
  cell.gets.bump(gets);
  recorded_.puts += puts;
  recorded_.gets += gets;
  if (session.clock()->read(now).paused) return;
  cell.loop_puts.bump(static_cast<std::int64_t>(puts));
  cell.loop_gets.bump(static_cast<std::int64_t>(gets));
  add(cell.put_wait, puts);
  add(cell.get_wait, gets);
}

void PacedProbe::go_slow(std::int64_t now) noexcept {
  if (const std::shared_ptr<profile::Session> session = session_.lock()) publish(*session, now);
  fast_.store(false, std::memory_order_relaxed);
}

}  // namespace headrace::queues
