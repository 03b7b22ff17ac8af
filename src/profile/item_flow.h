// How many items of each operator and queue one delivered batch takes.
#pragma once

#include <cstdint>
#include <map>

#include "headrace/profile/figures.h"
#include "headrace/profile/graph.h"

namespace headrace::profile {

/// Ratios come from the totals behind an operator, up to the sink, so they do not depend on what was
/// prefetched. Holds references: the figures and the graph must outlive it and be complete when it is first
/// asked.
class ItemFlow {
 public:
  ItemFlow(const SegmentFigures& figures, const Graph& graph) : figures_(figures), graph_(graph) {}

  double items_per_batch(const GraphNode& node);
  double items_per_batch(const GraphQueue& queue);

  /// What was recorded of a queue; null if nothing was.
  const QueueFigures* figures_of(std::uint32_t queue) const;

 private:
  double count_items_per_batch(const GraphQueue& queue);
  double per_step(double items) const;
  const GraphQueue* queue_of(std::uint32_t number) const;

  const SegmentFigures& figures_;
  const Graph& graph_;
  /// Remembered per queue: branches that meet again are counted once, and a cycle (items that go round) ends.
  std::map<std::uint32_t, double> known_;
};

}  // namespace headrace::profile
