#include "headrace/trace/call_stack.h"

#include "trace/sort_runs.h"

namespace headrace::trace {
namespace {

/// The host's complete events, lane by lane; in each by their start, the longer one first.
std::vector<Row> rows_by_lane(const Columns& columns, const std::vector<EventKind>& kinds) {
  std::vector<std::vector<Row>> lanes(columns.lanes.size());
  std::size_t count = 0;
  for (Row row = 0; row < columns.size(); ++row) {
    if (columns.phase[row] != 'X' || is_on_device(kinds[row])) continue;
    lanes[columns.lane[row]].push_back(row);
    ++count;
  }
  std::vector<Row> order;
  order.reserve(count);
  for (std::vector<Row>& lane : lanes) {
    sort_runs(lane, [&](Row a, Row b) {
      if (columns.start_ns[a] != columns.start_ns[b]) return columns.start_ns[a] < columns.start_ns[b];
      return columns.duration_ns[a] > columns.duration_ns[b];
    });
    order.insert(order.end(), lane.begin(), lane.end());
    lane = {};
  }
  return order;
}

}  // namespace

CallStack::CallStack(const Columns& columns, const std::vector<EventKind>& kinds) {
  parent_.resize(columns.size(), kNoRow);
  std::vector<Row> open;  // outermost first; each encloses the next
  for (const Row row : rows_by_lane(columns, kinds)) {
    const std::int64_t start_ns = columns.start_ns[row];
    const std::int64_t end_ns = columns.end_ns(row);
    while (!open.empty()) {
      const Row top = open.back();
      const bool other_lane = columns.lane[top] != columns.lane[row];
      if (!other_lane && columns.end_ns(top) >= end_ns && columns.end_ns(top) > start_ns) break;
      // A moment at the very end of an event, or two at the same time, is enclosed too.
      if (!other_lane && columns.end_ns(top) == start_ns && end_ns == start_ns) break;
      if (!other_lane && columns.end_ns(top) > start_ns) ++overlapping_;
      open.pop_back();
    }
    if (!open.empty()) parent_[row] = open.back();
    open.push_back(row);
  }
}

std::vector<std::uint32_t> CallStack::depths() const {
  constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
  std::vector<std::uint32_t> depths(parent_.size(), kUnknown);
  std::vector<Row> way;  // up to the first caller whose depth is known
  for (Row row = 0; row < parent_.size(); ++row) {
    Row at = row;
    for (; at != kNoRow && depths[at] == kUnknown; at = parent_[at]) way.push_back(at);
    std::uint32_t depth = at == kNoRow ? 0 : depths[at] + 1;
    for (; !way.empty(); way.pop_back()) depths[way.back()] = depth++;
  }
  return depths;
}

}  // namespace headrace::trace
