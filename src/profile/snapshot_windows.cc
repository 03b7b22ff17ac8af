#include "profile/snapshot_parts.h"

#include <algorithm>

namespace headrace::profile {

void add_windows(const SegmentImage& image, std::uint32_t loader, const SegmentFigures& figures,
                 const Graph& graph, std::int64_t from_ns, Profile& profile) {
  const std::int64_t width = common_window_ns(image, loader);
  const std::int64_t end = from_ns + figures.loop_ns;
  const std::int64_t first = (from_ns + width - 1) / width;
  // Everything is on grids of at most 128 windows; a file that claims more is cut.
  const std::int64_t last = std::min(end / width + 1, first + std::int64_t{2} * metrics::kWindows);
  for (std::int64_t k = first; k < last; ++k) {
    const std::int64_t start_ns = k * width;
    const std::int64_t end_ns = std::min((k + 1) * width, end);
    const double span = static_cast<double>(end_ns - start_ns);
    if (span <= 0) break;
    Window window;
    window.start_s = static_cast<double>(start_ns - from_ns) * kSecond;
    window.end_s = static_cast<double>(end_ns - from_ns) * kSecond;
    const auto of_sink = [&](int field) {
      return std::max(
          0.0, sink_at(image, loader, field, (k + 1) * width) - sink_at(image, loader, field, start_ns));
    };
    window.steps = static_cast<std::uint64_t>(of_sink(0));
    window.wait_s = of_sink(1) * kSecond;
    window.starved_s = std::min(window.wait_s, of_sink(2) * kSecond);
    window.compute_s = of_sink(3) * kSecond;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      double busy = 0;
      double items = 0;
      for (const std::uint32_t number : graph.nodes[i].cells) {
        const CellFigures& cell = figures.cells[number];
        const WorkerFigures& worker = figures.workers[cell.worker];
        busy += std::max(
            0.0, busy_at(image, cell, worker, (k + 1) * width) - busy_at(image, cell, worker, start_ns));
        items += std::max(
            0.0, items_at(image, cell, worker, (k + 1) * width) - items_at(image, cell, worker, start_ns));
      }
      const int workers = std::max(1, profile.operators[i].workers);
      WindowOperator out;
      out.busy_share = share(busy, span * workers);
      out.demand_s = window.steps > 0 ? busy * kSecond / static_cast<double>(window.steps) / workers : 0;
      out.items = static_cast<std::uint64_t>(items);
      if (!profile.operators[i].items) out = {-1, -1, {}};
      window.operators.push_back(out);
    }
    for (const GraphQueue& queue : graph.queues) {
      const auto of_queue = [&](int field) {
        return std::max(0.0, queue_at(image, queue.queue, field, (k + 1) * width, end) -
                                 queue_at(image, queue.queue, field, start_ns, end));
      };
      window.queues.push_back({of_queue(2) / span, share(of_queue(3), span), share(of_queue(4), span)});
    }
    window.queues.resize(profile.queues.size());
    window.host = host_window(image, k, width);
    profile.windows.push_back(std::move(window));
  }
}

}  // namespace headrace::profile
