// The counters of a segment image as totals at one moment: what is open now is counted up to now.
//
// Totals stand in structs of their own (`CellTotals`, `SinkFigures`, ...), each followed by totals_of(),
// which pairs every total with the counter of the cell that it is read from and, where it goes into the
// profile as it is, with the figure there. What reads totals, takes earlier ones away, adds them up or folds
// the cells of finished writers goes over that list (src/profile/totals.h). A total without a line there does
// not compile.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/profile/profile.h"
#include "headrace/profile/segment_image.h"

namespace headrace::profile {

/// Totals of a latency histogram.
struct HistogramFigures {
  std::array<std::uint64_t, metrics::LatencyBuckets::kCount> buckets{};
  double sum_ns = 0;
  double max_ns = 0;

  void subtract(const HistogramFigures& base);
  void add(const HistogramFigures& other);
  std::uint64_t count() const;
  Latency latency() const;
};

/// Totals of an operator's copies to a device.
struct TransferFigures {
  double copies = 0, bytes = 0, pinned_bytes = 0, pageable_bytes = 0, timed_bytes = 0;
  double copy_ns = 0, buffer_wait_ns = 0;
};
template <class Visit>
constexpr void totals_of(Of<TransferFigures>, Visit&& total) {
  using Cell = metrics::TransferCell;
  total(&TransferFigures::copies, &Cell::copies, &Transfer::copies);
  total(&TransferFigures::bytes, &Cell::bytes, &Transfer::bytes);
  total(&TransferFigures::pinned_bytes, &Cell::pinned_bytes);
  total(&TransferFigures::pageable_bytes, &Cell::pageable_bytes);
  total(&TransferFigures::timed_bytes, &Cell::timed_bytes);
  total(&TransferFigures::copy_ns, &Cell::copy_ns, &Transfer::copy_s);
  total(&TransferFigures::buffer_wait_ns, &Cell::buffer_wait_ns, &Transfer::buffer_wait_s);
}

struct RemoteLoadFigures {
  double answers = 0, waiting_milli = 0, first_byte_ns = 0;
  double transfers = 0, transferring_milli = 0, bytes = 0, transfer_ns = 0;
};
template <class Visit>
constexpr void totals_of(Of<RemoteLoadFigures>, Visit&& total) {
  using Cell = metrics::RemoteLoadCell;
  total(&RemoteLoadFigures::answers, &Cell::answers, &RemoteLoad::answers);
  total(&RemoteLoadFigures::waiting_milli, &Cell::waiting_milli);
  total(&RemoteLoadFigures::transferring_milli, &Cell::transferring_milli);
  total(&RemoteLoadFigures::first_byte_ns, &Cell::first_byte_ns);
  total(&RemoteLoadFigures::transfers, &Cell::transfers, &RemoteLoad::transfers);
  total(&RemoteLoadFigures::bytes, &Cell::bytes, &RemoteLoad::bytes);
  total(&RemoteLoadFigures::transfer_ns, &Cell::transfer_ns, &RemoteLoad::transfer_s);
}

struct TrendFigures {
  double points = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
};
template <class Visit>
constexpr void totals_of(Of<TrendFigures>, Visit&& total) {
  using Cell = metrics::TrendCell;
  total(&TrendFigures::points, &Cell::points);
  total(&TrendFigures::x, &Cell::x);
  total(&TrendFigures::y, &Cell::y);
  total(&TrendFigures::xx, &Cell::xx);
  total(&TrendFigures::xy, &Cell::xy);
  total(&TrendFigures::yy, &Cell::yy);
}

/// Totals of an operator's requests to remote services, or (`owner` 0) of no operator's.
struct RemoteTotals {
  double bytes = 0, retries = 0, backoff_ns = 0, first_byte_ns = 0, transfer_ns = 0, refused_ns = 0;
  double first_reads = 0, first_read_ns = 0, repeated_reads = 0, repeated_read_ns = 0;
  std::array<double, metrics::kRemoteAnswers> answers{};
  HistogramFigures latency;
  std::array<RemoteLoadFigures, metrics::RemoteLoadClasses::kCount> load{};
  TrendFigures first_byte_by_load, transfer_by_load, answer_by_pause;
};
template <class Visit>
constexpr void totals_of(Of<RemoteTotals>, Visit&& total) {
  using Cell = metrics::RemoteCell;
  total(&RemoteTotals::bytes, &Cell::bytes, &Remote::bytes);
  total(&RemoteTotals::retries, &Cell::retries, &Remote::retries);
  total(&RemoteTotals::backoff_ns, &Cell::backoff_ns, &Remote::backoff_s);
  total(&RemoteTotals::first_byte_ns, &Cell::first_byte_ns, &Remote::first_byte_s);
  total(&RemoteTotals::transfer_ns, &Cell::transfer_ns, &Remote::transfer_s);
  total(&RemoteTotals::refused_ns, &Cell::refused_ns, &Remote::refused_s);
  total(&RemoteTotals::first_reads, &Cell::first_reads, &Remote::first_reads);
  total(&RemoteTotals::first_read_ns, &Cell::first_read_ns, &Remote::first_reads_s);
  total(&RemoteTotals::repeated_reads, &Cell::repeated_reads, &Remote::repeated_reads);
  total(&RemoteTotals::repeated_read_ns, &Cell::repeated_read_ns, &Remote::repeated_reads_s);
  total(&RemoteTotals::answers, &Cell::answers);
  total(&RemoteTotals::latency, &Cell::latency);
  total(&RemoteTotals::load, &Cell::load);
  total(&RemoteTotals::first_byte_by_load, &Cell::first_byte_by_load);
  total(&RemoteTotals::transfer_by_load, &Cell::transfer_by_load);
  total(&RemoteTotals::answer_by_pause, &Cell::answer_by_pause);
}
struct RemoteFigures : RemoteTotals {
  std::uint32_t owner = 0;  ///< 1 + operator; RemoteCell::kOfNoOperator
};

struct CellTotals {
  std::uint64_t items = 0;
  std::uint64_t failures = 0;
  double busy_ns = 0;
  double loop_items = 0;
  double sampled_items = 0;
  double sampled_wall_ns = 0;
  double sampled_cpu_ns = 0;
  double sampled_pool_ns = 0;
  double samples = 0;
  double lock_samples = 0;
  double holder_samples = 0;
  double held_samples = 0;
  double state_samples = 0;
  double storage_samples = 0;
  HistogramFigures service;
  TransferFigures transfer;
};
template <class Visit>
constexpr void totals_of(Of<CellTotals>, Visit&& total) {
  using Cell = metrics::OperatorCell;
  total(&CellTotals::items, &Cell::items, &WorkerProfile::items);
  total(&CellTotals::failures, &Cell::failures, &WorkerProfile::failures);
  total(&CellTotals::busy_ns, &Cell::busy_ns, &WorkerProfile::busy_s);
  total(&CellTotals::loop_items, &Cell::loop_items);
  total(&CellTotals::sampled_items, &Cell::sequence);
  total(&CellTotals::sampled_wall_ns, &Cell::sampled_wall_ns);
  total(&CellTotals::sampled_cpu_ns, &Cell::sampled_cpu_ns);
  total(&CellTotals::sampled_pool_ns, &Cell::sampled_pool_ns);
  total(&CellTotals::samples, &Cell::samples);
  total(&CellTotals::lock_samples, &Cell::lock_samples);
  total(&CellTotals::holder_samples, &Cell::holder_samples);
  total(&CellTotals::held_samples, &Cell::held_samples);
  total(&CellTotals::state_samples, &Cell::state_samples);
  total(&CellTotals::storage_samples, &Cell::storage_samples);
  total(&CellTotals::service, &Cell::service);
  total(&CellTotals::transfer, &Cell::transfer);
}

/// One operator in one worker.
struct CellFigures : CellTotals {
  std::uint32_t cell = 0;    ///< index in the segment
  std::uint32_t worker = 0;  ///< index in SegmentFigures::workers
  std::uint32_t op = 0;
  metrics::Place place = metrics::Place::worker;
  bool is_loop = false;
  bool labelled = false;    ///< `slowest` holds the framework's names of items
  bool sampled = false;     ///< one call in 32 was timed
  std::string file_system;  ///< type of the one that it last waited for; empty: not known
  std::int64_t first_done_ns = 0;
  std::vector<ServiceSample> sequence;
  std::vector<ServiceSample> slowest;
};

struct EdgeFigures {
  std::uint32_t queue = 0;
  bool is_put = false;
  std::uint64_t items = 0;
};

struct WorkerTotals {
  std::array<double, metrics::kWorkerStates> state_ns{};
  std::optional<double> cpu_ns;
  std::optional<double> run_queue_ns;
  double clocked_cpu_ns = 0;   ///< that the thread used, sampled items or not
  double clocked_loop_ns = 0;  ///< in so much of its time
  std::optional<double> read_bytes;
  std::optional<double> read_calls;
  std::optional<double> storage_bytes;
  std::optional<double> major_faults;
  std::optional<double> process_cpu_ns;
  double gc_ns = 0;
  double out_of_data_ns = 0;
};
template <class Visit>
constexpr void totals_of(Of<WorkerTotals>, Visit&& total) {
  using Cell = metrics::WorkerCell;
  total(&WorkerTotals::state_ns, &Cell::state_ns);
  total(&WorkerTotals::cpu_ns, &Cell::cpu_ns);
  total(&WorkerTotals::run_queue_ns, &Cell::run_queue_ns, &WorkerProfile::run_queue_wait_s);
  total(&WorkerTotals::clocked_cpu_ns, &Cell::clocked_cpu_ns);
  total(&WorkerTotals::clocked_loop_ns, &Cell::clocked_loop_ns);
  total(&WorkerTotals::read_bytes, &Cell::read_bytes, &WorkerProfile::read_bytes);
  total(&WorkerTotals::read_calls, &Cell::read_calls, &WorkerProfile::read_calls);
  total(&WorkerTotals::storage_bytes, &Cell::storage_bytes, &WorkerProfile::storage_bytes);
  total(&WorkerTotals::major_faults, &Cell::major_faults, &WorkerProfile::major_faults);
  total(&WorkerTotals::process_cpu_ns, &Cell::process_cpu_ns, &WorkerProfile::process_cpu_s);
  total(&WorkerTotals::gc_ns, &Cell::gc_ns, &WorkerProfile::gc_s);
  total(&WorkerTotals::out_of_data_ns, &Cell::out_of_data_ns, &WorkerProfile::out_of_data_s);
}

struct WorkerFigures : WorkerTotals {
  static constexpr std::uint32_t kNoCell = ~0U;

  std::uint32_t index = 0;  ///< in the segment
  int pid = 0;
  int tid = 0;
  bool alive = false;
  bool retired = false;
  bool is_sink = false;
  int number = -1;                    ///< of a worker process of a framework's loader, there; -1: none
  int siblings = 0;                   ///< workers of its pass
  std::uint32_t open_cell = kNoCell;  ///< operator cell whose body it is in now
  double open_s = 0;                  ///< for so long
  int process_threads = 0;            ///< 0: unknown, or the sink's process
  int allowed_cores = 0;              ///< 0: unknown
  std::int64_t started_ns = 0;        ///< Clock
  std::int64_t ended_ns = 0;          ///< Clock; the moment itself while it lives
  std::vector<EdgeFigures> edges;
  // For windows.
  std::int64_t now_loop_ns = 0;  ///< loop time up to which its open state counts
};

struct QueueTotals {
  std::vector<double> time_at_ns;
  double level_ns = 0;
  double empty_ns = 0;
  double full_ns = 0;
  std::uint64_t puts = 0;
  std::uint64_t gets = 0;
  std::uint64_t samples = 0;
  double loop_gets = 0;
  HistogramFigures put_wait;
  HistogramFigures get_wait;
  HistogramFigures item_age;
};
/// Queue cells are never folded, so there is no counter to name.
template <class Visit>
constexpr void totals_of(Of<QueueTotals>, Visit&& total) {
  total(&QueueTotals::time_at_ns);
  total(&QueueTotals::level_ns);
  total(&QueueTotals::empty_ns);
  total(&QueueTotals::full_ns);
  total(&QueueTotals::puts);
  total(&QueueTotals::gets);
  total(&QueueTotals::samples);
  total(&QueueTotals::loop_gets);
  total(&QueueTotals::put_wait);
  total(&QueueTotals::get_wait);
  total(&QueueTotals::item_age);
}
struct QueueFigures : QueueTotals {
  std::uint32_t index = 0;
  std::string name;
  bool sampled = false;  ///< at times too fast for a stamp on every item
  std::int64_t capacity = 0;
  std::int64_t levels_per_bin = 1;
};

struct SinkFigures {
  std::uint64_t epochs = 0, steps = 0;
  double waits = 0, computes = 0, wait_ns = 0, starved_ns = 0, worker_start_ns = 0, compute_ns = 0;
  double ready_calls = 0, ready_wait_ns = 0;
  double sampled_compute_ns = 0, sampled_compute_cpu_ns = 0, quiet_steps = 0, quiet_compute_ns = 0;
  double device_steps = 0, device_ns = 0, device_host_ns = 0;
  double whole_steps = 0, marked_steps = 0, tail_steps = 0;
  double marked_gap_ns = 0, marked_forward_backward_ns = 0, marked_tail_ns = 0;
  double redirected_ns = 0, ledger_unknown_ns = 0;
  double samples = 0, lock_samples = 0, holder_samples = 0, held_samples = 0, running_samples = 0;
  double first_batch_ns = 0, later_epochs_ns = 0;
  std::array<double, metrics::kLedgerOperators> ledger_ns{};
  std::array<double, metrics::kLedgerOperators> ledger_order_ns{};
  std::array<double, metrics::kLedgerOperators> ledger_waiting_ns{};
  double ledger_handoff_ns = 0;
  HistogramFigures wait, step;
};
template <class Visit>
constexpr void totals_of(Of<SinkFigures>, Visit&& total) {
  using Cell = metrics::SinkCell;
  total(&SinkFigures::epochs, &Cell::epochs);
  total(&SinkFigures::steps, &Cell::steps);
  total(&SinkFigures::waits, &Cell::waits);
  total(&SinkFigures::computes, &Cell::computes);
  total(&SinkFigures::wait_ns, &Cell::wait_ns);
  total(&SinkFigures::starved_ns, &Cell::starved_ns);
  total(&SinkFigures::worker_start_ns, &Cell::worker_start_ns);
  total(&SinkFigures::compute_ns, &Cell::compute_ns);
  total(&SinkFigures::ready_calls, &Cell::ready_calls);
  total(&SinkFigures::ready_wait_ns, &Cell::ready_wait_ns);
  total(&SinkFigures::sampled_compute_ns, &Cell::sampled_compute_ns);
  total(&SinkFigures::sampled_compute_cpu_ns, &Cell::sampled_compute_cpu_ns);
  total(&SinkFigures::quiet_steps, &Cell::quiet_steps);
  total(&SinkFigures::quiet_compute_ns, &Cell::quiet_compute_ns);
  total(&SinkFigures::device_steps, &Cell::device_steps);
  total(&SinkFigures::device_ns, &Cell::device_ns);
  total(&SinkFigures::device_host_ns, &Cell::device_host_ns);
  total(&SinkFigures::whole_steps, &Cell::whole_steps);
  total(&SinkFigures::marked_steps, &Cell::marked_steps);
  total(&SinkFigures::tail_steps, &Cell::tail_steps);
  total(&SinkFigures::marked_gap_ns, &Cell::marked_gap_ns);
  total(&SinkFigures::marked_forward_backward_ns, &Cell::marked_forward_backward_ns);
  total(&SinkFigures::marked_tail_ns, &Cell::marked_tail_ns);
  total(&SinkFigures::redirected_ns, &Cell::redirected_ns);
  total(&SinkFigures::ledger_unknown_ns, &Cell::ledger_unknown_ns);
  total(&SinkFigures::samples, &Cell::samples);
  total(&SinkFigures::lock_samples, &Cell::lock_samples);
  total(&SinkFigures::holder_samples, &Cell::holder_samples);
  total(&SinkFigures::held_samples, &Cell::held_samples);
  total(&SinkFigures::running_samples, &Cell::running_samples);
  total(&SinkFigures::first_batch_ns, &Cell::first_batch_ns);
  total(&SinkFigures::later_epochs_ns, &Cell::later_epochs_ns);
  total(&SinkFigures::ledger_ns, &Cell::ledger);
  total(&SinkFigures::ledger_order_ns, &Cell::ledger_order);
  total(&SinkFigures::ledger_waiting_ns, &Cell::ledger_waiting);
  total(&SinkFigures::ledger_handoff_ns, &Cell::ledger_handoff_ns);
  total(&SinkFigures::wait, &Cell::wait);
  total(&SinkFigures::step, &Cell::step);
}

/// Totals of a loader's hand-off from its worker processes.
struct HandoffFigures {
  double batches = 0, message_bytes = 0, tensors = 0, counted = 0;
  double pickle_ns = 0, pickle_cpu_ns = 0, pickle_cpu_reads = 0, send_ns = 0;
  double receive_ns = 0, receive_cpu_ns = 0, receive_cpu_reads = 0;
  double unused_batches = 0;
};
template <class Visit>
constexpr void totals_of(Of<HandoffFigures>, Visit&& total) {
  using Cell = metrics::HandoffCell;
  total(&HandoffFigures::batches, &Cell::batches);
  total(&HandoffFigures::message_bytes, &Cell::message_bytes);
  total(&HandoffFigures::tensors, &Cell::tensors);
  total(&HandoffFigures::counted, &Cell::counted);
  total(&HandoffFigures::pickle_ns, &Cell::pickle_ns);
  total(&HandoffFigures::pickle_cpu_ns, &Cell::pickle_cpu_ns);
  total(&HandoffFigures::pickle_cpu_reads, &Cell::pickle_cpu_reads);
  total(&HandoffFigures::send_ns, &Cell::send_ns);
  total(&HandoffFigures::receive_ns, &Cell::receive_ns);
  total(&HandoffFigures::receive_cpu_ns, &Cell::receive_cpu_ns);
  total(&HandoffFigures::receive_cpu_reads, &Cell::receive_cpu_reads);
  total(&HandoffFigures::unused_batches, &Cell::unused_batches);
}

/// Everything of one image at one moment.
struct SegmentFigures {
  std::int64_t now_ns = 0;   ///< Clock
  std::int64_t loop_ns = 0;  ///< loop time at that moment
  bool begun = false;
  bool running = false;  ///< its owner runs
  std::vector<WorkerFigures> workers;
  std::vector<CellFigures> cells;
  std::vector<QueueFigures> queues;
  SinkFigures sink;
  HandoffFigures handoff;
  std::vector<RemoteFigures> remotes;  ///< two may have one owner

  /// `loader`: index of the loader whose sink is wanted. Trusts nothing in the image: indexes out of range
  /// are skipped, absurd totals are cut to what fits into the elapsed time.
  static SegmentFigures of(const SegmentImage& image, std::uint32_t loader);
  /// Subtracts `base`, an earlier moment of the same segment.
  void subtract(const SegmentFigures& base);
};

/// Totals at a window boundary (loop time, a multiple of the cell's window width).
double busy_at(const SegmentImage& image, const CellFigures& cell, const WorkerFigures& worker,
               std::int64_t boundary);
double items_at(const SegmentImage& image, const CellFigures& cell, const WorkerFigures& worker,
                std::int64_t boundary);
/// field: 2 level_ns, 3 empty_ns, 4 full_ns.
double queue_at(const SegmentImage& image, std::uint32_t queue, int field, std::int64_t boundary,
                std::int64_t loop_now);
/// field: 0 waits, 1 wait_ns, 2 starved_ns, 3 compute_ns.
double sink_at(const SegmentImage& image, std::uint32_t loader, int field, std::int64_t boundary);

/// The widest window in use, ns: the grid on which all cells can be laid over each other.
std::int64_t common_window_ns(const SegmentImage& image, std::uint32_t loader);

}  // namespace headrace::profile
