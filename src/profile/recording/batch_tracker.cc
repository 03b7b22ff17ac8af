#include "headrace/profile/batch_tracker.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string>

#include "headrace/profile/process_identity.h"
#include "headrace/profile/stages.h"

namespace headrace::profile {
namespace {

using metrics::Clock;
using metrics::Delivery;
using metrics::DeliveryRing;
using metrics::WaitCharges;

constexpr auto kAcquire = std::memory_order_acquire;

std::size_t power_of_two_from(std::size_t least) {
  std::size_t size = 16;
  while (size < least) size *= 2;
  return size;
}

/// How much of [from, to] lies in [low, high].
std::int64_t overlap(std::int64_t from, std::int64_t to, std::int64_t low, std::int64_t high) {
  return std::max<std::int64_t>(0, std::min(to, high) - std::max(from, low));
}

}  // namespace

void BatchTracker::Level::put(std::int64_t at) noexcept {
  last_ns = std::max(last_ns, at);
  ++level;
  probe.put(0, last_ns, true);
  probe.changed(level, last_ns);
}

void BatchTracker::Level::get(std::int64_t at) noexcept {
  last_ns = std::max(last_ns, at);
  if (level > 0) --level;
  probe.get(0, last_ns, true);
  probe.changed(level, last_ns);
}

std::uint32_t BatchTracker::next_pass() noexcept {
  // Forked processes count on from where their parent was: the process number tells theirs apart.
  static std::atomic<std::uint32_t> passes{0};
  return static_cast<std::uint32_t>(current_pid()) * 4096U + passes.fetch_add(1) % 4096U + 1U;
}

BatchTracker::BatchTracker(std::shared_ptr<LoaderHandle> loader, Shape shape)
    : loader_(std::move(loader)),
      session_(*loader_->session()),
      shape_(shape),
      pid_(current_pid()),
      handoff_("handoff", "handoff", 0, 0, "", loader_->id(), kStageHandoff),
      pin_("pin_memory", "pin_memory", 0, 0, "", loader_->id(), kStagePin) {
  shape_.workers = std::max(1, shape_.workers);
  shape_.window = std::clamp(shape_.window, 1, 1 << 20);
  batches_.resize(power_of_two_from(static_cast<std::size_t>(shape_.window) * 4));
  workers_.resize(static_cast<std::size_t>(shape_.workers));
  made_.reserve(static_cast<std::size_t>(shape_.workers) * DeliveryRing::kLength);
  index_queues_.resize(shape_.workers <= kIndexQueues ? workers_.size() : 1);
  open_queues();
}

BatchTracker::~BatchTracker() { ended(Clock::now_ns()); }

void BatchTracker::open_queues() {
  const bool one_each = index_queues_.size() > 1 || shape_.workers == 1;
  for (std::size_t i = 0; i < index_queues_.size(); ++i) {
    const std::string name = one_each ? "index[" + std::to_string(i) + "]" : "index";
    open_queue(index_queues_[i], name, one_each ? std::max(1, shape_.window / shape_.workers) : shape_.window,
               QueueRole::index);
  }
  open_queue(results_, "results", shape_.window, QueueRole::results);
  if (shape_.pins) open_queue(pinned_queue_, "pinned", shape_.window, QueueRole::pinned);
  open_queue(reorder_, "reorder", shape_.window, QueueRole::reorder);
}

void BatchTracker::close_queues() noexcept {
  for (const Level& level : index_queues_) session_.close_queue(level.id);
  for (const Level* level : {&results_, &pinned_queue_, &reorder_}) session_.close_queue(level->id);
}

void BatchTracker::open_queue(Level& level, const std::string& name, std::int64_t capacity, QueueRole role) {
  level.id = session_.queue_id({.name = name, .capacity = capacity, .loader = loader_->id(), .role = role});
  level.probe = session_.queue_probe(level.id);
  level.probe.changed(0, Clock::now_ns());
}

BatchTracker::Batch* BatchTracker::find(std::int64_t number) noexcept {
  if (number < 0) return nullptr;
  Batch& batch = batches_[static_cast<std::size_t>(number) & (batches_.size() - 1)];
  return batch.number == number ? &batch : nullptr;
}

BatchTracker::Level& BatchTracker::index_queue(int worker) noexcept {
  return index_queues_[index_queues_.size() > 1 ? static_cast<std::size_t>(worker) : 0];
}

// Workers enter themselves into the segment when they start; until then nothing is known of them.
DeliveryRing* BatchTracker::find_ring(int worker) noexcept {
  Worker& one = workers_[static_cast<std::size_t>(worker)];
  if (one.ring != nullptr) return one.ring;
  Segment& segment = session_.segment();
  for (const metrics::WorkerCell& cell : segment.known_workers()) {
    if (cell.pass.load() != shape_.pass || cell.number.load() != worker ||
        cell.loader.load() != static_cast<std::uint32_t>(loader_->id() + 1)) {
      continue;
    }
    one.ring = &segment.deliveries()[&cell - segment.workers()];
    return one.ring;
  }
  return nullptr;
}

void BatchTracker::note_parts(Worker& worker, const Delivery& delivery) noexcept {
  std::int64_t most = 0;
  for (const Delivery::Part& part : delivery.parts) {
    if (part.op.load() == 0 || part.ns.load() <= most) continue;
    most = part.ns.load();
    worker.last_op = static_cast<int>(part.op.load()) - 1;
  }
}

void BatchTracker::catch_up_with(int index) noexcept {
  DeliveryRing* ring = find_ring(index);
  if (ring == nullptr) return;
  Worker& worker = workers_[static_cast<std::size_t>(index)];
  const std::uint64_t taken = ring->taken.load(kAcquire);
  // A worker that is a whole ring ahead has overwritten what was not read in time: it cannot be followed.
  if (taken > worker.taken + DeliveryRing::kLength) worker.taken = taken - DeliveryRing::kLength;
  for (; worker.taken < taken; ++worker.taken) {
    const Delivery& delivery = ring->at(worker.taken);
    // A batch of an epoch that was left early is in no queue that is counted.
    Batch* batch = find(delivery.batch.load());
    if (batch == nullptr || batch->received_ns != 0 || delivery.taken_ns.load() < batch->dispatched_ns)
      continue;
    batch->taken_ns = delivery.taken_ns.load();
    batch->delivery = &delivery;
    index_queue(index).get(batch->taken_ns);
  }
  if (worker.fetched + DeliveryRing::kLength < worker.taken)
    worker.fetched = worker.taken - DeliveryRing::kLength;
  for (; worker.fetched < worker.taken; ++worker.fetched) {
    const Delivery& delivery = ring->at(worker.fetched);
    const std::int64_t fetched_ns = delivery.fetched_ns.load(kAcquire);
    if (fetched_ns == 0) return;
    note_parts(worker, delivery);
    Batch* batch = find(delivery.batch.load());
    if (batch == nullptr || batch->delivery != &delivery || fetched_ns < batch->taken_ns) continue;
    batch->fetched_ns = fetched_ns;
    if (made_.size() < made_.capacity()) made_.push_back(fetched_ns);
  }
}

void BatchTracker::catch_up() noexcept {
  made_.clear();
  for (int i = 0; i < shape_.workers; ++i) catch_up_with(i);
  std::sort(made_.begin(), made_.end());
  for (const std::int64_t at : made_) results_.put(at);
}

bool BatchTracker::in_loop(std::int64_t now) const noexcept { return !session_.clock()->read(now).paused; }

void BatchTracker::restart(std::int64_t now) noexcept try {
  const std::scoped_lock lock(mutex_);
  if (pid_ != current_pid()) return;
  if (!ended_) forget_batches(now);
  if (ended_) open_queues();
  ended_ = false;
} catch (...) {
  // No memory for the names of queues: they are not recorded.
}

void BatchTracker::forget_batches(std::int64_t now) noexcept {
  catch_up();
  std::int64_t unused = 0;
  for (Batch& batch : batches_) {
    unused += batch.number >= 0 && batch.fetched_ns > 0 ? 1 : 0;
    batch = Batch();
  }
  if (LoaderRecord* record = session_.loader_record(loader_->id()))
    record->handoff.unused_batches.bump(unused);
  for (Level& level : index_queues_) {
    while (level.level > 0) level.get(now);
  }
  for (Level* level : {&results_, &pinned_queue_, &reorder_}) {
    while (level->level > 0) level->get(now);
  }
  last_received_.store(-1, std::memory_order_relaxed);
}

void BatchTracker::give_out(int worker, std::int64_t number, std::int64_t now) noexcept {
  if (number < 0 || worker < 0 || worker >= shape_.workers) return;
  Batch& batch = batches_[static_cast<std::size_t>(number) & (batches_.size() - 1)];
  batch = Batch();
  batch.number = number;
  batch.worker = worker;
  batch.dispatched_ns = now;
  index_queue(worker).put(now);
}

void BatchTracker::dispatched(int worker, std::int64_t number, std::int64_t now) noexcept {
  if (pid_ != current_pid()) return;
  const std::scoped_lock lock(mutex_);
  // A loader gives out the next number right after it received a batch: what its workers did is read there.
  give_out(worker, number, now);
}

void BatchTracker::dispatched_at_start(int worker, std::int64_t number, std::int64_t began) noexcept {
  if (pid_ != current_pid()) return;
  const std::scoped_lock lock(mutex_);
  give_out(worker, number, began);
}

void BatchTracker::received(std::int64_t number, std::int64_t asked, std::int64_t now,
                            std::int64_t cpu_ns) noexcept {
  ThreadContext* context = ThreadContext::recording();
  if (context == nullptr || pid_ != current_pid()) return;
  std::int64_t available = asked;
  {
    const std::scoped_lock lock(mutex_);
    catch_up();
    caught_up_ns_ = now;
    Batch* batch = find(number);
    // An acknowledgement or a marker of the loader's own, not a batch: all of it was waiting.
    if (batch == nullptr || batch->received_ns != 0) {
      context->probe.unblock(now);
      return;
    }
    // Taken by a worker that nothing is known of (it is not recorded, or ran a whole ring ahead).
    if (batch->taken_ns == 0) index_queue(batch->worker).get(now);
    results_.get(now);
    last_received_.store(number, std::memory_order_relaxed);
    batch->received_ns = now;
    if (!shape_.pins) reorder_.put(now);
    if (batch->delivery != nullptr && batch->delivery->batch.load() == number) {
      const std::int64_t pickled = batch->delivery->pickled_ns.load(kAcquire);
      available = std::clamp(pickled > 0 ? pickled : batch->fetched_ns, asked, now);
    } else {
      available = now;  // nothing is known of its worker
    }
    count_handoff(*batch, available, asked, now, cpu_ns);
  }
  metrics::OperatorCell* cell = context->cell(handoff_.id_in(*context->session()));
  if (cell != nullptr) {
    context->probe.attribute(*cell, available, now, cpu_ns);
  } else {
    context->probe.unblock(now);
  }
}

void BatchTracker::count_handoff(const Batch& batch, std::int64_t available, std::int64_t asked,
                                 std::int64_t now, std::int64_t cpu_ns) noexcept {
  LoaderRecord* record = session_.loader_record(loader_->id());
  const Delivery* delivery = batch.delivery;
  if (record == nullptr || delivery == nullptr || delivery->batch.load() != batch.number || !in_loop(asked))
    return;
  metrics::HandoffCell& handoff = record->handoff;
  const std::int64_t pickled = delivery->pickled_ns.load(kAcquire);
  const std::int64_t sent = delivery->sent_ns.load();
  handoff.batches.bump(1);
  handoff.receive_ns.bump(now - available);
  if (cpu_ns >= 0) {
    handoff.receive_cpu_ns.bump(std::min(cpu_ns, now - asked));
    handoff.receive_cpu_reads.bump(1);
  }
  if (pickled == 0) return;
  handoff.message_bytes.bump(delivery->message_bytes.load());
  const std::int64_t fetched = batch.fetched_ns > 0 ? batch.fetched_ns : delivery->fetched_ns.load(kAcquire);
  if (fetched > 0) handoff.pickle_ns.bump(std::max<std::int64_t>(0, pickled - fetched));
  if (delivery->pickle_cpu_ns.load() >= 0) {
    handoff.pickle_cpu_ns.bump(delivery->pickle_cpu_ns.load());
    handoff.pickle_cpu_reads.bump(1);
  }
  handoff.send_ns.bump(std::max<std::int64_t>(0, (sent > 0 ? sent : now) - pickled));
  if (delivery->tensors.load() >= 0) {
    handoff.tensors.bump(delivery->tensors.load());
    handoff.counted.bump(1);
  }
}

void BatchTracker::pinned(std::int64_t number, std::int64_t now) noexcept {
  ThreadContext* context = ThreadContext::recording();
  if (context == nullptr || pid_ != current_pid()) return;
  std::int64_t began = 0;
  {
    const std::scoped_lock lock(mutex_);
    Batch* batch = find(number);
    if (batch == nullptr || batch->received_ns == 0 || batch->pinned_ns != 0) return;
    batch->pinned_ns = now;
    began = batch->received_ns;
    pinned_queue_.put(now);
  }
  if (metrics::OperatorCell* cell = context->cell(pin_.id_in(*context->session())))
    context->probe.attribute(*cell, began, now, -1);
}

void BatchTracker::unqueued(std::int64_t number, std::int64_t now) noexcept {
  if (pid_ != current_pid()) return;
  const std::scoped_lock lock(mutex_);
  catch_up();
  if (find(number) == nullptr) return;
  pinned_queue_.get(now);
  reorder_.put(now);
}

/// When the first of the batches behind `batch` was made; 0 if none is yet.
std::int64_t BatchTracker::younger_made(const Batch& batch) const noexcept {
  std::int64_t first = 0;
  for (const Batch& other : batches_) {
    if (other.number <= batch.number || other.fetched_ns == 0) continue;
    if (first == 0 || other.fetched_ns < first) first = other.fetched_ns;
  }
  return first;
}

void BatchTracker::charge_service(const Batch& batch, WaitCharges::What what, std::int64_t ns,
                                  WaitCharges& charges) noexcept {
  if (ns <= 0) return;
  std::int64_t known = 0;
  if (what != WaitCharges::What::waiting_for_worker && batch.delivery != nullptr) {
    for (const Delivery::Part& part : batch.delivery->parts) known += part.op.load() > 0 ? part.ns.load() : 0;
  }
  if (known <= 0) {
    charges.add(what, workers_[static_cast<std::size_t>(batch.worker)].last_op, ns);
    return;
  }
  for (const Delivery::Part& part : batch.delivery->parts) {
    if (part.op.load() == 0) continue;
    const double share = static_cast<double>(part.ns.load()) / static_cast<double>(known);
    charges.add(what, static_cast<int>(part.op.load()) - 1,
                static_cast<std::int64_t>(share * static_cast<double>(ns)));
  }
}

WaitCharges BatchTracker::yielded(std::int64_t number, std::int64_t asked, std::int64_t now) noexcept {
  WaitCharges charges;
  if (pid_ != current_pid()) return charges;
  const std::scoped_lock lock(mutex_);
  if (caught_up_ns_ < asked) catch_up();
  Batch* batch = find(number);
  if (batch == nullptr) return charges;
  reorder_.get(now);
  const Batch of = *batch;
  *batch = Batch();
  charges.workers_first = number < shape_.workers;
  if (of.fetched_ns > 0) {
    charges.made_from_ns = of.taken_ns > 0 ? of.taken_ns : of.dispatched_ns;
    charges.made_until_ns = of.pinned_ns > 0 ? of.pinned_ns : of.fetched_ns;
    charges.made_by = of.worker;
  }
  if (of.fetched_ns == 0) {
    // A worker that nothing is known of: received before the call is all that can be said.
    charges.ready = of.received_ns > 0 && of.received_ns <= asked;
    return charges;
  }
  const std::int64_t complete = shape_.pins && of.pinned_ns > 0 ? of.pinned_ns : of.fetched_ns;
  charges.ready = complete <= asked;
  if (charges.ready) return charges;

  using What = WaitCharges::What;
  const std::int64_t taken = of.taken_ns > 0 ? of.taken_ns : of.fetched_ns;
  // From then on the loop waits for the order, not for a batch.
  const std::int64_t younger = shape_.ordered ? younger_made(of) : 0;
  const std::int64_t ordered_from = younger > 0 ? std::max(younger, asked) : now;
  const std::int64_t in_service = overlap(taken, of.fetched_ns, asked, std::min(now, ordered_from));
  const std::int64_t queued = overlap(of.dispatched_ns, taken, asked, std::min(now, ordered_from));
  const std::int64_t ordered = overlap(asked, of.fetched_ns, ordered_from, now);
  charge_service(of, What::waiting_for_worker, queued, charges);
  charge_service(of, What::in_service, in_service, charges);
  charge_service(of, What::order, ordered, charges);
  if (of.pinned_ns > 0 && of.received_ns > 0) {
    const int pin = pin_.id_in(session_);
    charges.add(What::in_service, pin, overlap(of.received_ns, of.pinned_ns, asked, now));
    charges.add(What::handoff, -1, overlap(of.fetched_ns, of.received_ns, asked, now));
    charges.add(What::handoff, -1, overlap(of.pinned_ns, now, asked, now));
  } else {
    charges.add(What::handoff, -1, overlap(of.fetched_ns, now, asked, now));
  }
  return charges;
}

void BatchTracker::ended(std::int64_t now) noexcept {
  const std::scoped_lock lock(mutex_);
  if (ended_ || pid_ != current_pid()) return;
  forget_batches(now);
  close_queues();
  ended_ = true;
}

}  // namespace headrace::profile
