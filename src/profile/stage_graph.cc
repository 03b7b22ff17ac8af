#include "profile/framework_graphs.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "headrace/profile/loader_model.h"
#include "headrace/profile/stages.h"
#include "profile/record_life.h"

namespace headrace::profile {
namespace {

using metrics::Place;

/// A pool whose threads are busy for so much of the time is what limits its stages.
constexpr double kPoolIsBusy = 0.9;
constexpr std::int64_t kMaxThreads = 1 << 20;

class StageGraphBuilder {
 public:
  StageGraphBuilder(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                    const LoaderModel& model)
      : image_(image),
        figures_(figures),
        loader_(loader),
        model_(model),
        sink_(image.loaders()[loader].sink) {
    graph_.node_of_operator.assign(kMaxOperators, -1);
  }

  Graph build() {
    find_stages_of_workers();
    for (std::uint32_t op = 0; op < kMaxOperators; ++op) {
      if (is_live(record_of(op).life.load(std::memory_order_relaxed)) && is_ours(op) && !is_transfer(op))
        node_of(op, stage_in_record(op), Place::worker);
    }
    for (std::uint32_t i = 0; i < figures_.cells.size(); ++i) add_cell(i);
    std::stable_sort(graph_.nodes.begin(), graph_.nodes.end(),
                     [&](const GraphNode& a, const GraphNode& b) { return rank_of(a) < rank_of(b); });
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      graph_.node_of_operator[graph_.nodes[i].op] = static_cast<int>(i);
      for (const std::uint32_t cell : graph_.nodes[i].cells)
        graph_.node_of_operator[figures_.cells[cell].op] = static_cast<int>(i);
    }
    share_segments();
    share_pools();
    add_queues();
    return std::move(graph_);
  }

 private:
  const OperatorRecord& record_of(std::uint32_t op) const { return image_.operators()[op]; }
  bool is_ours(std::uint32_t op) const { return record_of(op).loader.load() == loader_ + 1; }
  bool is_transfer(std::uint32_t op) const {
    return std::string_view(record_of(op).kind.data()) == "transfer";
  }
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
    const OperatorRecord& record = record_of(cell.op);
    const bool is_annotated =
        record.loader.load() == 0 && (record.flags.load() & (kIsWrappedObject | kIsWorkerLoop)) == 0;
    return is_annotated && cell.place == Place::worker ? stage_of_worker_[cell.worker] : -1;
  }

  bool ran_in_sink(std::uint32_t op) const { return (sink_.operators[op / 64].load() >> (op % 64) & 1) != 0; }

  void add_cell(std::uint32_t index) {
    const CellFigures& cell = figures_.cells[index];
    if (cell.items == 0 && cell.busy_ns <= 0) return;
    int stage = -1;
    if (cell.place == Place::step) {
      if (!is_ours(cell.op) || !is_transfer(cell.op) || !ran_in_sink(cell.op)) return;
    } else {
      stage = stage_of(cell);
      if (stage < 0) return;
    }
    GraphNode& node = node_of(cell.op, stage, cell.place);
    node.cells.push_back(index);
    if (cell.first_done_ns > 0) node.first_done_ns = std::min(node.first_done_ns, cell.first_done_ns);
  }

  GraphNode& node_of(std::uint32_t op, int stage, Place place) {
    const OperatorRecord& record = record_of(op);
    const bool in_loop = stage >= 0 && model_.stages[static_cast<std::size_t>(stage)].workers == 0;
    for (GraphNode& known : graph_.nodes) {
      // By name: two processes that met an operator at the same moment may both have made its record.
      const OperatorRecord& its = record_of(known.op);
      if (its.name.view() == record.name.view() && its.kind == record.kind && known.stage == stage &&
          known.in_step == (place == Place::step)) {
        return known;
      }
    }
    GraphNode made;
    made.op = op;
    made.name = record.name.view();
    made.kind = text_of(record.kind);
    made.flags = record.flags.load();
    made.in_sink = in_loop;
    made.in_step = place == Place::step;
    made.stage = stage;
    made.first_done_ns = std::numeric_limits<std::int64_t>::max();
    graph_.nodes.push_back(std::move(made));
    return graph_.nodes.back();
  }

  /// Copies in the training step are last; in a stage its own operators come first, by place.
  std::tuple<bool, int, std::uint32_t, std::int64_t> rank_of(const GraphNode& node) const {
    const std::uint32_t place = is_ours(node.op) ? record_of(node.op).stage.load() : ~0U;
    return {node.in_step, node.stage, place, node.first_done_ns};
  }

  double busy_ns(const GraphNode& node) const {
    double sum = 0;
    for (const std::uint32_t cell : node.cells) sum += figures_.cells[cell].busy_ns;
    return sum;
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
    std::vector<std::uint32_t> ours;
    for (std::uint32_t i = 0; i < records.size(); ++i) {
      if (is_live(records[i].life.load(std::memory_order_relaxed)) &&
          records[i].loader.load() == loader_ + 1 &&
          records[i].role.load() == static_cast<std::uint32_t>(QueueRole::between)) {
        ours.push_back(i);
      }
    }
    std::stable_sort(ours.begin(), ours.end(), [&](std::uint32_t a, std::uint32_t b) {
      return records[a].from.load() < records[b].from.load();
    });
    for (const std::uint32_t queue : ours)
      connect(queue, static_cast<int>(records[queue].from.load()) - 1,
              static_cast<int>(records[queue].to.load()) - 1);
  }

  void connect(std::uint32_t queue, int from, int to) {
    GraphQueue made{queue, {}, {}, to < 0};
    // Input of a stage's first operator goes out at its last.
    for (std::size_t i = graph_.nodes.size(); i > 0 && from >= 0 && made.from.empty(); --i) {
      GraphNode& node = graph_.nodes[i - 1];
      if (node.in_step || node.stage != from) continue;
      made.from.push_back(static_cast<int>(i - 1));
      node.outputs.push_back(queue);
    }
    for (std::size_t i = 0; i < graph_.nodes.size() && to >= 0 && made.to.empty(); ++i) {
      GraphNode& node = graph_.nodes[i];
      if (node.in_step || node.stage != to) continue;
      made.to.push_back(static_cast<int>(i));
      node.inputs.push_back(queue);
    }
    graph_.queues.push_back(std::move(made));
  }

  const SegmentImage& image_;
  const SegmentFigures& figures_;
  std::uint32_t loader_;
  const LoaderModel& model_;
  const metrics::SinkCell& sink_;
  std::vector<int> stage_of_worker_;
  Graph graph_;
};

}  // namespace

Graph stage_graph(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                  const LoaderModel& model) {
  return StageGraphBuilder(image, figures, loader, model).build();
}

}  // namespace headrace::profile
