// Gives out the records of a segment: operators, queues, loaders, workers and their cells.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/profile/segment.h"
#include "headrace/profile/stages.h"

namespace headrace::profile {

struct OperatorSpec {
  std::string_view name;
  std::string_view kind = "map";
  std::uint64_t key = 0;  ///< equal for the same code in every process; tells two operators of one name apart
  std::uint32_t flags = 0;
  std::string_view parameter = {};  ///< parameter that widens it; "": "<name>.workers"
  std::vector<int> inputs = {};     ///< declared queues, by id
  std::vector<int> outputs = {};
  int loader = -1;          ///< whose own graph it belongs to; names are unique within it
  std::uint32_t stage = 0;  ///< place in that graph
  int feeds = -1;           ///< of an object given to wrap: its loader, where that is known already
};

struct QueueSpec {
  std::string_view name;
  std::int64_t capacity = 0;
  int loader = -1;  ///< of a framework's loader: names are unique within it
  QueueRole role = QueueRole::user;
  StageEdge edge{};  ///< of QueueRole::between
};

/// Lock-free across processes (one compare-and-swap claims a record); within a process the session serialises
/// it. Every call returns -1 or null when the table is full and counts that in the header.
class Registry {
 public:
  explicit Registry(Segment& segment) : segment_(segment) {}

  /// Finds the operator of this name, kind and key, or makes it. A name used for something else gets "#2". An
  /// object given to wrap is one loader's only: the next one of its name and class is another operator.
  int operator_id(const OperatorSpec& spec);
  int queue_id(const QueueSpec& spec);
  int queue_id(std::string_view name, std::int64_t capacity) {
    return queue_id({.name = name, .capacity = capacity});
  }
  /// `identity`: a loader of this name and identity that was closed is opened again, with all that belongs
  /// to it; 0: always a new one.
  /// The oldest closed loader is folded if a table is full of what belongs to closed ones, see fold_loader.
  int loader_id(std::string_view name, int source_operator, std::uint64_t identity = 0);

  metrics::WorkerCell* claim_worker(std::int64_t now);
  metrics::OperatorCell* claim_cell(const metrics::WorkerCell& worker, int operator_id, metrics::Place place,
                                    bool is_loop);

  /// The requests of an operator, by 1 + its id, or of no operator (RemoteCell::kOfNoOperator). Two processes that
  /// ask at the same moment may get two cells: readers add them up.
  metrics::RemoteCell* remote_cell(std::uint32_t owner) noexcept;
  /// State of all requests; null if there is no room.
  metrics::RemoteTraffic* remote_traffic() noexcept;

  /// The track of a loader's waits or batches; not bound if none is available.
  metrics::RangeHistory range_history(metrics::TrackKind kind, int loader);
  /// A queue is closed: its levels are kept up to here.
  void leave_levels(metrics::QueueCell& cell, std::int64_t now) noexcept;
  /// Tracks whose writers were killed: they end at the last anchor, and are free to be gone on with.
  void leave_tracks_of_gone_writers() noexcept;
  /// The number of what the user calls a range; -1 when the table is full.
  int annotation_id(std::string_view name);

  /// Adds finished workers (of this process, or of dead ones) to the retired workers' cells and frees theirs.
  /// Owner process only. Returns how many were folded away.
  int fold_finished_workers();
  /// Records still free: below a quarter of the table the owner folds.
  bool is_crowded() const noexcept;

 private:
  /// False: the file system has no room for it.
  bool back_record(Section section, std::uint32_t index) noexcept;
  int claim(std::atomic<std::uint32_t>* first, std::size_t stride, Section section, std::uint32_t free_value,
            std::uint32_t claimed_value);
  /// A record by name: the one that `is_same` accepts, or a new one, claimed, under an unused name.
  struct Found {
    int id = -1;
    bool is_new = false;
    std::string name;
  };
  template <class Record, class IsSame>
  Found find_or_claim(std::span<Record> records, Section section, std::string_view base, int loader,
                      IsSame&& is_same);
  int reopened_loader(std::string_view base, std::uint64_t identity);
  bool feeds_another(std::uint32_t op, int loader) const noexcept;
  bool allot_bins(metrics::QueueCell& cell, std::int64_t capacity);
  void begin_occupancy(metrics::QueueCell& cell);
  void begin_levels(std::uint32_t queue);
  /// Adds the oldest closed loader to "(earlier loaders)", which has a sink only, and frees its record, its
  /// operators and its queues. False: there is none. Owner process only.
  bool fold_loader();
  void forget_loader(std::uint32_t index);
  void free_operator(std::uint32_t op);
  void free_queue(std::uint32_t queue);
  bool owned_here() const noexcept;
  std::vector<metrics::OperatorCell*> cells_of(std::uint32_t worker);
  void fold_worker(std::uint32_t index);
  void settle_gone(std::uint32_t index);
  void forget_start_up(std::uint32_t index);
  metrics::WorkerCell* retired_worker(const metrics::WorkerCell& leaving);

  Segment& segment_;
};

}  // namespace headrace::profile
