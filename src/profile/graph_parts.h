// Parts that all builders of a loader's graph share: which records count, nodes of operators, the cells of each.
#pragma once

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/profile/graph.h"
#include "headrace/profile/layout.h"

namespace headrace::profile {

/// The base of a builder. `loader`: number of the one whose graph is built.
class GraphParts {
 protected:
  GraphParts(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader)
      : image_(image), figures_(figures), number_(loader), sink_(image.loaders()[loader].sink) {
    graph_.node_of_operator.assign(kMaxOperators, -1);
  }

  // --- records ---

  const OperatorRecord& record_of(std::uint32_t op) const { return image_.operators()[op]; }
  bool is_ours(std::uint32_t op) const { return record_of(op).loader.load() == number_ + 1; }
  bool is_transfer(std::uint32_t op) const {
    return text_of(record_of(op).kind) == name_of(OperatorKind::transfer);
  }
  /// The user's own, and neither the loop of a thread nor the wrapped object.
  bool is_annotated(std::uint32_t op) const {
    const OperatorRecord& record = record_of(op);
    return record.loader.load() == 0 && (record.flags.load() & (kIsWrappedObject | kIsWorkerLoop)) == 0;
  }
  bool ran_in_sink(std::uint32_t op) const { return (sink_.operators[op / 64].load() >> (op % 64) & 1) != 0; }
  static bool is_idle(const CellFigures& cell) { return cell.items == 0 && cell.busy_ns <= 0; }

  // --- nodes ---

  GraphNode& add_node(std::uint32_t op) {
    const OperatorRecord& record = record_of(op);
    GraphNode& made = graph_.nodes.emplace_back();
    made.op = op;
    made.name = record.name.view();
    made.kind = text_of(record.kind);
    made.flags = record.flags.load();
    made.first_done_ns = std::numeric_limits<std::int64_t>::max();
    return made;
  }

  void add_cell(GraphNode& node, std::uint32_t cell) {
    node.cells.push_back(cell);
    const std::int64_t first = figures_.cells[cell].first_done_ns;
    if (first > 0) node.first_done_ns = std::min(node.first_done_ns, first);
  }

  double busy_ns(const GraphNode& node) const {
    double sum = 0;
    for (const std::uint32_t cell : node.cells) sum += figures_.cells[cell].busy_ns;
    return sum;
  }

  const SegmentImage& image_;
  const SegmentFigures& figures_;
  const std::uint32_t number_;
  const metrics::SinkCell& sink_;
  Graph graph_;
};

/// sampler ▸ index queues ▸ dataset, transforms, collate (in the workers) ▸ results ▸ handoff, pin_memory ▸
/// reorder ▸ sink. What the workers call besides (operators that the user annotated) stands between the
/// dataset and the transforms; copies to the device in the training step stand last.
Graph window_graph(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                   const LoaderModel* model);

/// One node for each operator of the loader, in the order of the stages; what never ran is there without
/// cells. Operators of one stage share its workers, so they share a segment. Annotated operators inside a
/// stage's threads stand in that stage.
Graph stage_graph(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                  const LoaderModel& model);

}  // namespace headrace::profile
