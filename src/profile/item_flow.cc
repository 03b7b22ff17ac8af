#include "profile/item_flow.h"

#include <algorithm>

namespace headrace::profile {

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

}  // namespace headrace::profile
