#include "profile/framework_graphs.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "headrace/profile/stages.h"
#include "profile/record_life.h"

namespace headrace::profile {
namespace {

using metrics::Place;

/// The sampler is shown where it takes more than this share of the wait.
constexpr double kSamplerShare = 0.05;
constexpr std::uint32_t kStageAnnotated = kStageTransform - 1;
constexpr std::uint32_t kStageStep = kStagePin + 1;
/// Operators of one thread share a number: the workers', the pinning thread's.
constexpr int kWorkerSegment = 0;
constexpr int kPinSegment = 1;

class LoaderGraphBuilder {
 public:
  LoaderGraphBuilder(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                     const LoaderModel* model)
      : image_(image), figures_(figures), loader_(loader), record_(image.loaders()[loader]) {
    if (model != nullptr) makes_ = window_of(*model)->from;
    graph_.node_of_operator.assign(kMaxOperators, -1);
  }

  Graph build() {
    for (std::uint32_t i = 0; i < figures_.cells.size(); ++i) add_cell(i);
    drop_cheap_sampler();
    std::stable_sort(graph_.nodes.begin(), graph_.nodes.end(), [&](const GraphNode& a, const GraphNode& b) {
      return std::pair(stage_of(a), a.first_done_ns) < std::pair(stage_of(b), b.first_done_ns);
    });
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const std::uint32_t cell : graph_.nodes[i].cells) {
        graph_.node_of_operator[figures_.cells[cell].op] = static_cast<int>(i);
      }
    }
    number_segments();
    add_queues();
    return std::move(graph_);
  }

 private:
  const OperatorRecord& record_of(std::uint32_t op) const { return image_.operators()[op]; }
  bool is_ours(std::uint32_t op) const { return record_of(op).loader.load() == loader_ + 1; }

  std::uint32_t stage_of(const GraphNode& node) const {
    if (node.in_step) return kStageStep;
    return is_ours(node.op) ? record_of(node.op).stage.load() : kStageAnnotated;
  }

  bool ran_in_sink(std::uint32_t op) const {
    return (record_.sink.operators[op / 64].load() >> (op % 64) & 1) != 0;
  }

  /// Calls in our workers, in our GetNext, and the copy to the device in our step.
  bool belongs(const CellFigures& cell) const {
    if (is_ours(cell.op))
      return cell.place != Place::step || text_of(record_of(cell.op).kind) == name_of(OperatorKind::transfer);
    const OperatorRecord& record = record_of(cell.op);
    if (record.loader.load() != 0 || (record.flags.load() & (kIsWrappedObject | kIsWorkerLoop)) != 0)
      return false;
    const metrics::WorkerCell& worker = image_.workers()[figures_.workers[cell.worker].index];
    if (cell.place == Place::worker) return worker.loader.load() == loader_ + 1;
    return ran_in_sink(cell.op) && cell.place == Place::get_next;
  }

  void add_cell(std::uint32_t index) {
    const CellFigures& cell = figures_.cells[index];
    if ((cell.items == 0 && cell.busy_ns <= 0) || !belongs(cell)) return;
    const OperatorRecord& record = record_of(cell.op);
    const bool serves = is_ours(cell.op) && record.stage.load() >= kStageHandoff;
    const bool in_sink = cell.place == Place::get_next && !serves;
    const bool in_step = cell.place == Place::step;
    GraphNode* node = nullptr;
    for (GraphNode& known : graph_.nodes) {
      // By name: two workers that met an operator at the same moment may both have made its record.
      const OperatorRecord& its = record_of(known.op);
      const bool same = its.name.view() == record.name.view() && its.kind == record.kind &&
                        its.stage.load() == record.stage.load();
      if (same && known.in_sink == in_sink && known.in_step == in_step) node = &known;
    }
    if (node == nullptr) {
      GraphNode made;
      made.op = cell.op;
      made.name = record.name.view();
      made.kind = text_of(record.kind);
      made.flags = record.flags.load();
      made.in_sink = in_sink;
      made.in_step = in_step;
      made.serves = serves;
      // The user's own operators run where the window's workers do.
      made.stage = is_ours(cell.op) ? static_cast<int>(record.stage.load() / kPlacesPerStage) : makes_;
      made.first_done_ns = std::numeric_limits<std::int64_t>::max();
      graph_.nodes.push_back(std::move(made));
      node = &graph_.nodes.back();
    }
    node->cells.push_back(index);
    if (cell.first_done_ns > 0) node->first_done_ns = std::min(node->first_done_ns, cell.first_done_ns);
  }

  void drop_cheap_sampler() {
    std::erase_if(graph_.nodes, [&](const GraphNode& node) {
      if (!is_ours(node.op) || record_of(node.op).stage.load() != kStageSampler) return false;
      double busy_ns = 0;
      for (const std::uint32_t cell : node.cells) busy_ns += figures_.cells[cell].busy_ns;
      return busy_ns < kSamplerShare * std::max(1.0, figures_.sink.wait_ns);
    });
  }

  static bool in_workers(const GraphNode& node) { return !node.in_sink && !node.in_step && !node.serves; }

  void number_segments() {
    bool pins = false;
    for (const GraphNode& node : graph_.nodes)
      pins |= node.serves && record_of(node.op).stage.load() == kStagePin;
    for (GraphNode& node : graph_.nodes) {
      if (in_workers(node)) node.segment = kWorkerSegment;
      if (node.serves && pins) node.segment = kPinSegment;
    }
  }

  int first_node(bool (*wanted)(const GraphNode&)) const {
    const auto found = std::find_if(graph_.nodes.begin(), graph_.nodes.end(), wanted);
    return found == graph_.nodes.end() ? -1 : static_cast<int>(found - graph_.nodes.begin());
  }
  int last_node(bool (*wanted)(const GraphNode&)) const {
    for (int i = static_cast<int>(graph_.nodes.size()) - 1; i >= 0; --i) {
      if (wanted(graph_.nodes[static_cast<std::size_t>(i)])) return i;
    }
    return -1;
  }

  void connect(std::uint32_t queue, int from, int to, bool to_sink) {
    GraphQueue made{queue, {}, {}, to_sink};
    if (from >= 0) {
      made.from.push_back(from);
      graph_.nodes[static_cast<std::size_t>(from)].outputs.push_back(queue);
    }
    if (to >= 0) {
      made.to.push_back(to);
      graph_.nodes[static_cast<std::size_t>(to)].inputs.push_back(queue);
    }
    graph_.queues.push_back(std::move(made));
  }

  void add_queues() {
    const auto serving = [](const GraphNode& node) { return node.serves; };
    const int first_worker = first_node(in_workers);
    const int last_worker = last_node(in_workers);
    const int receives = first_node(serving);
    const int hands_on = last_node(serving);
    const auto records = image_.queues();
    for (const QueueRole role :
         {QueueRole::index, QueueRole::results, QueueRole::pinned, QueueRole::reorder}) {
      for (std::uint32_t i = 0; i < records.size(); ++i) {
        const std::uint32_t life = records[i].life.load(std::memory_order_relaxed);
        if (!is_live(life) || records[i].loader.load() != loader_ + 1 ||
            records[i].role.load() != static_cast<std::uint32_t>(role)) {
          continue;
        }
        if (role == QueueRole::index) {
          connect(i, -1, first_worker, false);
        } else if (role == QueueRole::results) {
          connect(i, last_worker, receives, receives < 0);
        } else {
          connect(i, hands_on, -1, true);
        }
      }
    }
  }

  const SegmentImage& image_;
  const SegmentFigures& figures_;
  std::uint32_t loader_;
  const LoaderRecord& record_;
  int makes_ = -1;  ///< the stage whose workers make batches
  Graph graph_;
};

}  // namespace

Graph loader_graph(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                   const LoaderModel* model) {
  return LoaderGraphBuilder(image, figures, loader, model).build();
}

}  // namespace headrace::profile
