// Graphs of frameworks' loaders: each record contains its loader and its stage, so nothing is guessed from threads.
#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "headrace/profile/loader_model.h"
#include "headrace/profile/stages.h"
#include "profile/graph_parts.h"
#include "profile/record_life.h"

namespace headrace::profile {
namespace {

using metrics::Place;

/// Node, queue and place of a loader with a graph of its own.
class FrameworkGraph : protected GraphParts {
 protected:
  using GraphParts::GraphParts;

  /// The node of an operator, by name: two processes that met it at the same moment may both have made its
  /// record.
  template <class IsSame>
  GraphNode& node_of(std::uint32_t op, IsSame&& is_same) {
    const OperatorRecord& record = record_of(op);
    for (GraphNode& known : graph_.nodes) {
      const OperatorRecord& its = record_of(known.op);
      if (its.name.view() == record.name.view() && its.kind == record.kind && is_same(known)) return known;
    }
    return add_node(op);
  }

  /// Nodes in the order of their ranks.
  template <class RankOf>
  void sort_nodes(RankOf&& rank_of) {
    std::stable_sort(graph_.nodes.begin(), graph_.nodes.end(),
                     [&](const GraphNode& a, const GraphNode& b) { return rank_of(a) < rank_of(b); });
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      graph_.node_of_operator[graph_.nodes[i].op] = static_cast<int>(i);
      for (const std::uint32_t cell : graph_.nodes[i].cells)
        graph_.node_of_operator[figures_.cells[cell].op] = static_cast<int>(i);
    }
  }

  std::vector<std::uint32_t> queues_of(QueueRole role) const {
    const auto records = image_.queues();
    std::vector<std::uint32_t> ours;
    for (std::uint32_t i = 0; i < records.size(); ++i) {
      if (is_live(records[i].life.load(std::memory_order_relaxed)) &&
          records[i].loader.load() == number_ + 1 &&
          records[i].role.load() == static_cast<std::uint32_t>(role))
        ours.push_back(i);
    }
    return ours;
  }

  /// The queue leads from the last node that `fills` it to the first one that `takes`: input of a stage's first
  /// operator goes out at its last.
  template <class Fills, class Takes>
  void connect(std::uint32_t queue, Fills&& fills, Takes&& takes, bool to_sink) {
    GraphQueue made{queue, {}, {}, to_sink};
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (fills(graph_.nodes[i])) made.from = {static_cast<int>(i)};
      if (made.to.empty() && takes(graph_.nodes[i])) made.to = {static_cast<int>(i)};
    }
    for (const int from : made.from) graph_.nodes[static_cast<std::size_t>(from)].outputs.push_back(queue);
    for (const int to : made.to) graph_.nodes[static_cast<std::size_t>(to)].inputs.push_back(queue);
    graph_.queues.push_back(std::move(made));
  }
};

// --- a window of batches in flight ---

/// The sampler is shown where it takes more than this share of the wait.
constexpr double kSamplerShare = 0.05;
constexpr std::uint32_t kPlaceAnnotated = kStageTransform - 1;
constexpr std::uint32_t kPlaceStep = kStagePin + 1;
/// Operators of one thread share a number: the workers', the pinning thread's.
constexpr int kWorkerSegment = 0;
constexpr int kPinSegment = 1;

class WindowGraphBuilder : FrameworkGraph {
 public:
  WindowGraphBuilder(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                     const LoaderModel* model)
      : FrameworkGraph(image, figures, loader), makes_(model == nullptr ? -1 : window_of(*model)->from) {}

  Graph build() {
    for (std::uint32_t i = 0; i < figures_.cells.size(); ++i) add_cell_of_ours(i);
    drop_cheap_sampler();
    sort_nodes([&](const GraphNode& node) { return std::pair(place_of(node), node.first_done_ns); });
    number_segments();
    add_queues();
    return std::move(graph_);
  }

 private:
  std::uint32_t place_of(const GraphNode& node) const {
    if (node.in_step) return kPlaceStep;
    return is_ours(node.op) ? record_of(node.op).stage.load() : kPlaceAnnotated;
  }

  /// Calls in our workers, in our GetNext, and the copy to the device in our step.
  bool belongs(const CellFigures& cell) const {
    if (is_ours(cell.op)) return cell.place != Place::step || is_transfer(cell.op);
    if (!is_annotated(cell.op)) return false;
    const metrics::WorkerCell& worker = image_.workers()[figures_.workers[cell.worker].index];
    if (cell.place == Place::worker) return worker.loader.load() == number_ + 1;
    return ran_in_sink(cell.op) && cell.place == Place::get_next;
  }

  void add_cell_of_ours(std::uint32_t index) {
    const CellFigures& cell = figures_.cells[index];
    if (is_idle(cell) || !belongs(cell)) return;
    const std::uint32_t place = record_of(cell.op).stage.load();
    const bool ours = is_ours(cell.op);
    const bool serves = ours && place >= kStageHandoff;
    const bool in_sink = cell.place == Place::get_next && !serves;
    const bool in_step = cell.place == Place::step;
    GraphNode& node = node_of(cell.op, [&](const GraphNode& known) {
      return record_of(known.op).stage.load() == place && known.in_sink == in_sink &&
             known.in_step == in_step;
    });
    if (node.cells.empty()) {
      node.in_sink = in_sink;
      node.in_step = in_step;
      node.serves = serves;
      // The user's own operators run where the window's workers do.
      node.stage = ours ? static_cast<int>(place / kPlacesPerStage) : makes_;
    }
    add_cell(node, index);
  }

  void drop_cheap_sampler() {
    std::erase_if(graph_.nodes, [&](const GraphNode& node) {
      return is_ours(node.op) && record_of(node.op).stage.load() == kStageSampler &&
             busy_ns(node) < kSamplerShare * std::max(1.0, figures_.sink.wait_ns);
    });
  }

  static bool in_workers(const GraphNode& node) { return !node.in_sink && !node.in_step && !node.serves; }
  static bool serves(const GraphNode& node) { return node.serves; }
  static bool nobody(const GraphNode&) { return false; }

  void number_segments() {
    const bool pins = std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const GraphNode& node) {
      return node.serves && record_of(node.op).stage.load() == kStagePin;
    });
    for (GraphNode& node : graph_.nodes) {
      if (in_workers(node)) node.segment = kWorkerSegment;
      if (node.serves && pins) node.segment = kPinSegment;
    }
  }

  void add_queues() {
    const bool hands_over = std::any_of(graph_.nodes.begin(), graph_.nodes.end(), serves);
    for (const std::uint32_t queue : queues_of(QueueRole::index)) connect(queue, nobody, in_workers, false);
    for (const std::uint32_t queue : queues_of(QueueRole::results))
      connect(queue, in_workers, serves, !hands_over);
    for (const QueueRole role : {QueueRole::pinned, QueueRole::reorder}) {
      for (const std::uint32_t queue : queues_of(role)) connect(queue, serves, nobody, true);
    }
  }

  const int makes_;  ///< the stage whose workers make batches
};

// --- stages and queues ---

/// A pool whose threads are busy for so much of the time is what limits its stages.
constexpr double kPoolIsBusy = 0.9;
constexpr std::int64_t kMaxThreads = 1 << 20;

class StageGraphBuilder : FrameworkGraph {
 public:
  StageGraphBuilder(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                    const LoaderModel& model)
      : FrameworkGraph(image, figures, loader), model_(model) {}

  Graph build() {
    find_stages_of_workers();
    for (std::uint32_t op = 0; op < kMaxOperators; ++op) {
      if (is_live(record_of(op).life.load(std::memory_order_relaxed)) && is_ours(op) && !is_transfer(op))
        node_in(stage_in_record(op), op, false);
    }
    for (std::uint32_t i = 0; i < figures_.cells.size(); ++i) add_cell_of_ours(i);
    // Copies in the training step are last; in a stage its own operators come first, by place.
    sort_nodes([&](const GraphNode& node) {
      const std::uint32_t place = is_ours(node.op) ? record_of(node.op).stage.load() : ~0U;
      return std::tuple(node.in_step, node.stage, place, node.first_done_ns);
    });
    share_segments();
    share_pools();
    add_queues();
    return std::move(graph_);
  }

 private:
  int stage_in_record(std::uint32_t op) const {
    const auto stage = record_of(op).stage.load() / kPlacesPerStage;
    return stage < model_.stages.size() ? static_cast<int>(stage) : -1;
  }

  /// The stage of each thread that works for one only; -1: for none, or for several.
  void find_stages_of_workers() {
    constexpr int kSeveral = -2;
    stage_of_worker_.assign(figures_.workers.size(), -1);
    for (const CellFigures& cell : figures_.cells) {
      if (!is_ours(cell.op) || cell.place != Place::worker) continue;
      int& known = stage_of_worker_[cell.worker];
      const int stage = stage_in_record(cell.op);
      known = known == -1 || known == stage ? stage : kSeveral;
    }
  }

  /// The stage whose time a cell is; -1: it does not belong to this loader.
  int stage_of(const CellFigures& cell) const {
    if (is_ours(cell.op)) return stage_in_record(cell.op);
    return is_annotated(cell.op) && cell.place == Place::worker ? stage_of_worker_[cell.worker] : -1;
  }

  void add_cell_of_ours(std::uint32_t index) {
    const CellFigures& cell = figures_.cells[index];
    const bool in_step = cell.place == Place::step;
    const int stage = in_step ? -1 : stage_of(cell);
    const bool belongs =
        in_step ? is_ours(cell.op) && is_transfer(cell.op) && ran_in_sink(cell.op) : stage >= 0;
    if (!is_idle(cell) && belongs) add_cell(node_in(stage, cell.op, in_step), index);
  }

  GraphNode& node_in(int stage, std::uint32_t op, bool in_step) {
    GraphNode& node =
        node_of(op, [&](const GraphNode& known) { return known.stage == stage && known.in_step == in_step; });
    node.stage = stage;
    node.in_step = in_step;
    node.in_sink = stage >= 0 && model_.stages[static_cast<std::size_t>(stage)].workers == 0;
    return node;
  }

  /// Stages whose threads are a pool of fewer than their workers together: while all threads of the pool are
  /// busy, it is what limits, so its stages are one place with so many workers.
  void share_pools() {
    std::set<std::string> known;
    for (std::size_t first = 0; first < model_.stages.size(); ++first) {
      const std::string& pool = model_.stages[first].pool;
      if (!known.insert(pool).second) continue;
      const LoaderParameter* size = pool.empty() ? nullptr : parameter_named(model_, pool);
      const auto* threads = size == nullptr ? nullptr : std::get_if<std::int64_t>(&size->value);
      if (threads == nullptr || *threads < 1 || *threads > kMaxThreads) continue;
      const auto is_in_pool = [&](const GraphNode& node) {
        return !node.in_step && node.stage >= 0 &&
               model_.stages[static_cast<std::size_t>(node.stage)].pool == pool;
      };
      double busy = 0;
      for (const GraphNode& node : graph_.nodes) busy += is_in_pool(node) ? busy_ns(node) : 0;
      const double present = figures_.sink.wait_ns + figures_.sink.compute_ns;
      if (present <= 0 || busy < kPoolIsBusy * present * static_cast<double>(*threads)) continue;
      for (GraphNode& node : graph_.nodes) {
        if (!is_in_pool(node)) continue;
        node.pool = static_cast<int>(*threads);
        node.segment = static_cast<int>(first);
      }
    }
  }

  void share_segments() {
    for (GraphNode& node : graph_.nodes) {
      const auto others =
          std::count_if(graph_.nodes.begin(), graph_.nodes.end(),
                        [&](const GraphNode& other) { return other.stage == node.stage && !other.in_step; });
      if (!node.in_step && others > 1) node.segment = node.stage;
    }
  }

  void add_queues() {
    const auto records = image_.queues();
    std::vector<std::uint32_t> ours = queues_of(QueueRole::between);
    std::stable_sort(ours.begin(), ours.end(), [&](std::uint32_t a, std::uint32_t b) {
      return records[a].from.load() < records[b].from.load();
    });
    const auto is_of = [](std::uint32_t stage) {
      return [stage](const GraphNode& node) {
        return stage > 0 && !node.in_step && node.stage == static_cast<int>(stage) - 1;
      };
    };
    for (const std::uint32_t queue : ours) {
      const std::uint32_t to = records[queue].to.load();
      connect(queue, is_of(records[queue].from.load()), is_of(to), to == 0);
    }
  }

  const LoaderModel& model_;
  std::vector<int> stage_of_worker_;
};

}  // namespace

Graph window_graph(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                   const LoaderModel* model) {
  return WindowGraphBuilder(image, figures, loader, model).build();
}

Graph stage_graph(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                  const LoaderModel& model) {
  return StageGraphBuilder(image, figures, loader, model).build();
}

}  // namespace headrace::profile
