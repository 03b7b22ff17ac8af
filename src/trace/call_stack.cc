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

CallStack::CallStack(const Columns& columns, const std::vector<EventKind>& kinds,
                     std::span<const Handover> handovers) {
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
  hand_over(columns, kinds, handovers);
}

/// A handover leads strictly back in time and callers never begin after what they call, so no chain is a
/// circle.
void CallStack::hand_over(const Columns& columns, const std::vector<EventKind>& kinds,
                          std::span<const Handover> handovers) {
  if (handovers.empty()) return;
  is_handed_over_.resize(parent_.size(), false);
  for (const Handover& handover : handovers) {
    Row work = handover.work;
    while (kinds[work] == EventKind::runtime && !is_handed_over_[work] && parent_[work] != kNoRow &&
           kinds[parent_[work]] == EventKind::runtime)
      work = parent_[work];
    if (is_handed_over_[work] || columns.start_ns[handover.from] >= columns.start_ns[work]) continue;
    parent_[work] = handover.from;
    is_handed_over_[work] = true;
  }
}

Row CallStack::handed_over_by(Row row) const noexcept {
  if (is_handed_over_.empty()) return kNoRow;
  while (row != kNoRow && !is_handed_over_[row]) row = parent_[row];
  return row == kNoRow ? kNoRow : parent_[row];
}

Row CallStack::origin_of(Row row) const noexcept {
  for (Row from = handed_over_by(row); from != kNoRow; from = handed_over_by(from)) row = from;
  return row;
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
