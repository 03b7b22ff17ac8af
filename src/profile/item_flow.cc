#include "profile/snapshot_parts.h"

#include <algorithm>
#include <numeric>

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

const QueueFigures* ItemFlow::figures_of(std::uint32_t queue) const {
  for (const QueueFigures& figures : figures_.queues) {
    if (figures.index == queue) return &figures;
  }
  return nullptr;
}

const GraphQueue* ItemFlow::queue_of(std::uint32_t number) const {
  const auto found = std::find_if(graph_.queues.begin(), graph_.queues.end(),
                                  [&](const GraphQueue& one) { return one.queue == number; });
  return found == graph_.queues.end() ? nullptr : &*found;
}

double ItemFlow::per_step(double items) const {
  const double steps = static_cast<double>(figures_.sink.steps);
  return steps > 0 ? items / steps : 0;
}

double ItemFlow::items_per_batch(const GraphQueue& queue) {
  const auto [known, is_new] = known_.try_emplace(queue.queue, 0.0);
  if (!is_new) return known->second;
  const double items = count_items_per_batch(queue);
  return known_[queue.queue] = items;
}

double ItemFlow::count_items_per_batch(const GraphQueue& queue) {
  const QueueFigures* figures = figures_of(queue.queue);
  if (figures == nullptr) return 0;
  const double gets = static_cast<double>(figures->gets);
  if (queue.to_sink) return per_step(gets);
  double puts_behind = 0;
  double wanted_behind = 0;
  for (const int index : queue.to) {
    const GraphNode& node = graph_.nodes[static_cast<std::size_t>(index)];
    if (node.in_sink) return per_step(gets);
    for (const std::uint32_t output : node.outputs) {
      const GraphQueue* next = queue_of(output);
      const QueueFigures* behind = figures_of(output);
      if (next == nullptr || behind == nullptr) continue;
      puts_behind += static_cast<double>(behind->puts);
      wanted_behind += items_per_batch(*next);
    }
  }
  return puts_behind > 0 ? wanted_behind * gets / puts_behind : 0;
}

double ItemFlow::items_per_batch(const GraphNode& node) {
  double items = 0;
  for (const std::uint32_t cell : node.cells) items += static_cast<double>(figures_.cells[cell].items);
  double puts = 0;
  double out = 0;
  for (const std::uint32_t output : node.outputs) {
    const GraphQueue* queue = queue_of(output);
    const QueueFigures* figures = figures_of(output);
    if (queue == nullptr || figures == nullptr || queue->from.empty()) continue;
    // A queue that several operators feed: each by its share of the puts.
    puts += static_cast<double>(figures->puts) / static_cast<double>(queue->from.size());
    out += items_per_batch(*queue) / static_cast<double>(queue->from.size());
  }
  return puts > 0 && out > 0 ? out * items / puts : per_step(items);
}

States stage_states_ns(const GraphNode& node, const ItemFlow& flow, double busy_ns, double present_ns) {
  States states;
  states.busy = busy_ns;
  const double left = std::max(0.0, present_ns - busy_ns);
  for (const std::uint32_t queue : node.outputs) {
    const QueueFigures* figures = flow.figures_of(queue);
    if (figures == nullptr) continue;
    states.blocked_out += figures->put_wait.sum_ns;
    // A sampled queue's full share counts instead; and a source has nothing else to wait for.
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
