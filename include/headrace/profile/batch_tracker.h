// Place of each batch of a loader with worker processes, from the moment its number is given out until the
// training loop has it.
//
//     dispatched ──▶ taken ──▶ fetched ──▶ received (──▶ pinned) ──▶ yielded
//      index queue │  worker  │  results   │      reorder buffer    │
//
// The process that trains sees dispatched, received and yielded as they happen. What its workers did in
// between they leave in their delivery rings (metrics/delivery_ring.h); it is read at each event here, so the
// levels of the queues that processes share are exact although nobody holds a lock over them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "headrace/metrics/delivery_ring.h"
#include "headrace/metrics/queue_probe.h"
#include "headrace/metrics/sink_probe.h"
#include "headrace/profile/probes.h"

namespace headrace::profile {

/// One pass over one iterator. Thread-safe (a thread that pins memory receives, the training loop takes);
/// never throws; allocates when it is made only.
class BatchTracker {
 public:
  struct Shape {
    int workers = 1;
    int window = 2;  ///< batches in flight: those of each worker x workers
    bool ordered = true;
    bool pins = false;       ///< a thread receives and pins; else the training loop's own thread receives
    std::uint32_t pass = 0;  ///< tells apart the workers of iterators that run side by side
  };
  /// More worker processes than this share one record of their index queues.
  static constexpr int kIndexQueues = 16;

  BatchTracker(std::shared_ptr<LoaderHandle> loader, Shape shape);
  ~BatchTracker();
  BatchTracker(const BatchTracker&) = delete;
  BatchTracker& operator=(const BatchTracker&) = delete;

  /// A number of a pass that ever ran in this process, for Shape::pass.
  static std::uint32_t next_pass() noexcept;

  /// The workers go on with another epoch, in which batches are numbered from 0 again.
  void restart(std::int64_t now) noexcept;

  void dispatched(int worker, std::int64_t batch, std::int64_t now) noexcept;
  /// `dispatched` for batches given out before any call: all of them, before anything else is called, as
  /// the workers may have taken them already.
  void dispatched_at_start(int worker, std::int64_t batch, std::int64_t began) noexcept;
  /// The calling thread asked for a batch at `asked` and has unpickled `batch` now, with `cpu_ns` of CPU
  /// time. It must have been blocked (WorkerProbe::block) since `asked`.
  void received(std::int64_t batch, std::int64_t asked, std::int64_t now, std::int64_t cpu_ns) noexcept;
  /// The calling thread has pinned what it received last, and hands it on.
  void pinned(std::int64_t batch, std::int64_t now) noexcept;
  /// The training loop took `batch` from the queue of pinned ones.
  void unqueued(std::int64_t batch, std::int64_t now) noexcept;
  /// The training loop asked at `asked` and gets `batch` now: what it was doing meanwhile.
  metrics::WaitCharges yielded(std::int64_t batch, std::int64_t asked, std::int64_t now) noexcept;
  /// The iterator is done with: what is still in flight is never used.
  void ended(std::int64_t now) noexcept;

  const Shape& shape() const noexcept { return shape_; }
  /// Number of the batch that was received last; -1: none yet.
  std::int64_t last_received() const noexcept { return last_received_.load(std::memory_order_relaxed); }

 private:
  struct Batch {
    std::int64_t number = -1;  ///< -1: unused
    int worker = 0;
    std::int64_t dispatched_ns = 0;
    std::int64_t taken_ns = 0;
    std::int64_t fetched_ns = 0;
    std::int64_t received_ns = 0;
    std::int64_t pinned_ns = 0;
    const metrics::Delivery* delivery = nullptr;
  };
  struct Worker {
    metrics::DeliveryRing* ring = nullptr;
    std::uint64_t taken = 0;    ///< entries of the ring that were read up to their start
    std::uint64_t fetched = 0;  ///< ... up to their end
    int last_op = -1;           ///< what the worker spent most of its last batch in
  };
  struct Level {
    metrics::QueueProbe probe;
    int id = -1;
    std::int64_t level = 0;
    std::int64_t last_ns = 0;
    void put(std::int64_t at) noexcept;
    void get(std::int64_t at) noexcept;
  };

  Batch* find(std::int64_t number) noexcept;
  void give_out(int worker, std::int64_t number, std::int64_t now) noexcept;
  Level& index_queue(int worker) noexcept;
  metrics::DeliveryRing* find_ring(int worker) noexcept;
  void catch_up() noexcept;
  void catch_up_with(int worker) noexcept;
  void note_parts(Worker& worker, const metrics::Delivery& delivery) noexcept;
  void count_handoff(const Batch& batch, std::int64_t available, std::int64_t asked, std::int64_t now,
                     std::int64_t cpu_ns) noexcept;
  std::int64_t younger_made(const Batch& batch) const noexcept;
  void charge_service(const Batch& batch, metrics::WaitCharges::What what, std::int64_t ns,
                      metrics::WaitCharges& charges) noexcept;
  void forget_batches(std::int64_t now) noexcept;
  void open_queues();
  void close_queues() noexcept;
  void open_queue(Level& level, const std::string& name, std::int64_t capacity, QueueRole role);
  bool in_loop(std::int64_t now) const noexcept;

  std::shared_ptr<LoaderHandle> loader_;
  Session& session_;
  Shape shape_;
  int pid_;
  std::mutex mutex_;
  std::vector<Batch> batches_;  ///< by number, modulo its size
  std::vector<Worker> workers_;
  std::vector<Level> index_queues_;
  Level results_;
  Level pinned_queue_;
  Level reorder_;
  std::vector<std::int64_t> made_;  ///< scratch: when batches became ready since the last event
  OperatorHandle handoff_;
  OperatorHandle pin_;
  std::int64_t caught_up_ns_ = 0;  ///< Clock of the last batch received
  std::atomic<std::int64_t> last_received_{-1};
  bool ended_ = false;
};

}  // namespace headrace::profile
