#include "headrace/trace/call_stack.h"

#include <algorithm>
#include <tuple>

namespace headrace::trace {

CallStack::CallStack(const Columns& columns, const std::vector<EventKind>& kinds)
    : parent_(columns.size(), kNoRow), depth_(columns.size(), 0) {
  std::vector<Row> order;
  for (Row row = 0; row < columns.size(); ++row) {
    if (columns.phase[row] == 'X' && !is_on_device(kinds[row])) order.push_back(row);
  }
  const auto key = [&](Row row) {
    return std::tuple(columns.lane[row], columns.start_ns[row], -columns.duration_ns[row], row);
  };
  std::sort(order.begin(), order.end(), [&](Row a, Row b) { return key(a) < key(b); });

  std::vector<Row> open;  // outermost first; each encloses the next
  for (const Row row : order) {
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
    if (!open.empty()) {
      parent_[row] = open.back();
      depth_[row] = depth_[open.back()] + 1;
    }
    open.push_back(row);
  }
}

}  // namespace headrace::trace
