#include "analysis/device/calls.h"

#include <algorithm>

namespace headrace::analysis::device {
namespace {

using trace::EventKind;
using trace::Row;

bool is_call(EventKind kind) {
  return kind == EventKind::operation || kind == EventKind::annotation || kind == EventKind::runtime;
}

}  // namespace

Calls::Calls(const trace::Trace& trace) : trace_(&trace), of_row_(trace.columns().size(), kNone) {
  const trace::Columns& columns = trace.columns();
  for (Row row = 0; row < static_cast<Row>(columns.size()); ++row) {
    if (is_call(trace.kinds[row])) rows_.push_back(row);
  }
  std::sort(rows_.begin(), rows_.end(), [&](Row a, Row b) {
    if (columns.lane[a] != columns.lane[b]) return columns.lane[a] < columns.lane[b];
    if (columns.start_ns[a] != columns.start_ns[b]) return columns.start_ns[a] < columns.start_ns[b];
    if (columns.duration_ns[a] != columns.duration_ns[b])
      return columns.duration_ns[a] > columns.duration_ns[b];
    return a < b;
  });
  first_of_lane_.assign(columns.lanes.size() + 1, rows_.size());
  parent_.assign(rows_.size(), kNone);
  overlapped_ns_.assign(rows_.size(), 0);
  for (std::size_t i = rows_.size(); i-- > 0;) {
    of_row_[rows_[i]] = static_cast<std::int32_t>(i);
    first_of_lane_[columns.lane[rows_[i]]] = i;
  }
  for (std::size_t lane = columns.lanes.size(); lane-- > 0;)
    first_of_lane_[lane] = std::min(first_of_lane_[lane], first_of_lane_[lane + 1]);
  std::vector<std::int32_t> open;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row row = rows_[i];
    if (!open.empty() && columns.lane[rows_[static_cast<std::size_t>(open.back())]] != columns.lane[row])
      open.clear();
    // Only what encloses it whole: clocks are rounded, and a half overlap is not a call. The moments of a half overlap
    // are the later call's alone.
    std::int64_t from_ns = columns.start_ns[row];
    for (; !open.empty(); open.pop_back()) {
      const auto top = static_cast<std::size_t>(open.back());
      const std::int64_t top_end_ns = columns.end_ns(rows_[top]);
      if (top_end_ns >= columns.end_ns(row)) break;
      overlapped_ns_[top] += std::max<std::int64_t>(0, top_end_ns - from_ns);
      from_ns = std::max(from_ns, top_end_ns);
    }
    while (!open.empty() &&
           columns.end_ns(rows_[static_cast<std::size_t>(open.back())]) <= columns.start_ns[row])
      open.pop_back();
    if (!open.empty()) parent_[i] = open.back();
    open.push_back(static_cast<std::int32_t>(i));
  }
  merge_overloads();
}

void Calls::merge_overloads() {
  const trace::Columns& columns = trace_->columns();
  std::vector<std::uint32_t> children(rows_.size());
  for (const std::int32_t parent : parent_) {
    if (parent != kNone) ++children[static_cast<std::size_t>(parent)];
  }
  whole_.resize(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    whole_[i] = static_cast<std::int32_t>(i);
    if (parent_[i] == kNone) continue;
    parent_[i] = whole_[static_cast<std::size_t>(parent_[i])];
    const auto parent = static_cast<std::size_t>(parent_[i]);
    if (children[parent] != 1 || columns.name[rows_[parent]] != columns.name[rows_[i]]) continue;
    whole_[i] = parent_[i];
    overlapped_ns_[parent] += overlapped_ns_[i];
    children[parent] = children[i];
  }
}

std::int32_t Calls::around(Row row) const noexcept {
  while (row != trace::kNoRow) {
    if (of_row_[row] != kNone) return whole_[static_cast<std::size_t>(of_row_[row])];
    row = trace_->calls.parent_of(row);
  }
  return kNone;
}

std::int32_t Calls::at(std::uint32_t lane, std::int64_t ns) const noexcept {
  const trace::Columns& columns = trace_->columns();
  const auto begin = rows_.begin() + static_cast<std::ptrdiff_t>(first_of_lane_[lane]);
  const auto end = rows_.begin() + static_cast<std::ptrdiff_t>(first_of_lane_[lane + 1]);
  const auto after =
      std::upper_bound(begin, end, ns, [&](std::int64_t at, Row row) { return at < columns.start_ns[row]; });
  if (after == begin) return kNone;
  auto call = static_cast<std::int32_t>(after - rows_.begin()) - 1;
  while (call != kNone && columns.end_ns(rows_[static_cast<std::size_t>(call)]) < ns)
    call = parent_[static_cast<std::size_t>(call)];
  return call == kNone ? kNone : whole_[static_cast<std::size_t>(call)];
}

}  // namespace headrace::analysis::device
