// Items that one delivered batch takes of each operator and queue, and the states of workers as far as queues show them.
#pragma once

#include <cstdint>
#include <map>

#include "headrace/profile/figures.h"
#include "headrace/profile/graph.h"
#include "headrace/profile/operator_profile.h"

namespace headrace::profile {

/// Ratios come from the totals behind an operator, up to the sink, so they do not depend on what was
/// prefetched. Holds references: the figures and the graph must outlive it and be complete when it is first
/// asked.
class ItemFlow {
 public:
  ItemFlow(const SegmentFigures& figures, const Graph& graph) : figures_(figures), graph_(graph) {}

  double items_per_batch(const GraphNode& node);
  double items_per_batch(const GraphQueue& queue);

  /// The recording of a queue; null if there is none.
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

/// States of a stage, busy for `busy_ns` of its workers' `present_ns`. The threads of an executor that several
/// stages share show nothing of one stage's waits; its queues do.
States stage_states_ns(const GraphNode& node, const ItemFlow& flow, double busy_ns, double present_ns);

/// Figures of an operator without timed calls: those that nothing shows are absent. If the queues around it
/// were read often enough, it was at work while it had input and room for output: at least for what their
/// empty and full times leave. `present_s`: of one worker; `batches`: delivered in that time.
void make_untimed(const GraphNode& node, const ItemFlow& flow, double present_s, double batches,
                  OperatorProfile& out);

}  // namespace headrace::profile
