#include "profile/stage_states.h"

#include <algorithm>
#include <numeric>

#include "profile/shares.h"

namespace headrace::profile {
namespace {

/// One that seldom had input may have been at its last item whenever somebody looked.
constexpr double kSeldomFed = 0.5;

double time_of(const QueueFigures& queue) {
  return std::accumulate(queue.time_at_ns.begin(), queue.time_at_ns.end(), 0.0);
}
double full_share(const QueueFigures& queue) { return share(queue.full_ns, time_of(queue)); }
double empty_share(const QueueFigures& queue) { return share(queue.empty_ns, time_of(queue)); }

}  // namespace

States stage_states_ns(const GraphNode& node, const ItemFlow& flow, double busy_ns, double present_ns) {
  States states;
  states.busy = busy_ns;
  const double left = std::max(0.0, present_ns - busy_ns);
  for (const std::uint32_t queue : node.outputs) {
    const QueueFigures* figures = flow.figures_of(queue);
    if (figures == nullptr) continue;
    states.blocked_out += figures->put_wait.sum_ns;
    // Of a queue that was only looked at, its being full tells; and a source has nothing else to wait for.
    if (figures->samples > 0) states.blocked_out += node.inputs.empty() ? left : left * full_share(*figures);
  }
  states.blocked_out = std::min(states.blocked_out, left);
  states.blocked_in = left - states.blocked_out;
  return states;
}

void make_untimed(const GraphNode& node, const ItemFlow& flow, double present_s, double batches,
                  OperatorProfile& out) {
  out.items.reset();
  out.failures.reset();
  out.items_per_batch = out.busy_s = out.demand_s = -1;
  out.fidelity = Fidelity::sampled;
  out.states = {};
  double empty = 0;
  double full = 0;
  for (const auto* queues : {&node.inputs, &node.outputs}) {
    for (const std::uint32_t queue : *queues) {
      const QueueFigures* figures = flow.figures_of(queue);
      if (figures == nullptr || figures->samples < kFewestLevelSamples) return;
      if (queues == &node.outputs) full = std::max(full, full_share(*figures));
      if (queues == &node.inputs) empty = std::max(empty, empty_share(*figures));
    }
  }
  if (node.outputs.empty()) return;
  out.states.blocked_out = full;
  out.states.blocked_in = std::min(empty, 1 - full);
  out.states.busy = 1 - out.states.blocked_out - out.states.blocked_in;
  if (out.states.blocked_in > kSeldomFed) return;
  out.busy_s = out.states.busy * present_s * out.workers;
  if (batches > 0) out.demand_s = out.busy_s / batches / out.workers;
}

}  // namespace headrace::profile
