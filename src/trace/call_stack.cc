#include "headrace/trace/call_stack.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "headrace/trace/ascend/categories.h"
#include "trace/sort_runs.h"

namespace headrace::trace {
Correlation::Correlation(const Columns& columns, const std::vector<EventKind>& kinds) {
  launch_of_.resize(columns.size(), kNoRow);
  std::vector<Row> calls;
  std::vector<Row> work;
  calls.reserve(columns.size() / 4);
  work.reserve(columns.size() / 4);
  for (Row row = 0; row < columns.size(); ++row) {
    // 0 is what profilers write if there is no correlation.
    const bool correlated = columns.correlation[row] > 0;
    if (kinds[row] == EventKind::runtime && correlated) calls.push_back(row);
    if (is_device_work(kinds[row]) || kinds[row] == EventKind::synchronisation) {
      if (correlated) work.push_back(row);
      if (!correlated) ++without_launch_;
    }
  }
  const auto by_correlation = [&](Row a, Row b) {
    return std::tuple(columns.correlation[a], columns.start_ns[a], a) <
           std::tuple(columns.correlation[b], columns.start_ns[b], b);
  };
  sort_runs(calls, by_correlation);
  sort_runs(work, by_correlation);

  auto call = calls.begin();
  for (const Row row : work) {
    const std::int64_t correlation = columns.correlation[row];
    while (call != calls.end() && columns.correlation[*call] < correlation) ++call;
    if (call != calls.end() && columns.correlation[*call] == correlation) {
      launch_of_[row] = *call;
      started_.push_back(row);
    } else {
      ++without_launch_;
    }
  }
  // Rows of one launch have one correlation, so they stay in the order of their starts.
  sort_runs(started_, [&](Row a, Row b) { return launch_of_[a] < launch_of_[b]; });
  for (std::size_t i = 0; i < started_.size(); ++i) {
    const Row launch = launch_of_[started_[i]];
    if (!launches_.empty() && launches_.back() == launch) continue;
    launches_.push_back(launch);
    first_.push_back(static_cast<std::uint32_t>(i));
  }
  first_.push_back(static_cast<std::uint32_t>(started_.size()));
}

std::span<const Row> Correlation::started_by(Row launch) const noexcept {
  const auto at = std::lower_bound(launches_.begin(), launches_.end(), launch);
  if (at == launches_.end() || *at != launch) return {};
  const auto i = static_cast<std::size_t>(at - launches_.begin());
  return std::span(started_).subspan(first_[i], first_[i + 1] - first_[i]);
}

std::int64_t Correlation::clock_gap_ns(const Columns& columns) const {
  constexpr std::int64_t kOneClockNs = 1'000'000;         // stamps of one clock differ by microseconds
  constexpr std::int64_t kLongQueueNs = 600'000'000'000;  // no queue of launches is as long
  std::vector<std::int64_t> delays;
  delays.reserve(launches_.size());
  for (const Row launch : launches_)
    delays.push_back(columns.start_ns[started_by(launch).front()] - columns.start_ns[launch]);
  if (delays.empty()) return 0;
  const auto middle = delays.begin() + static_cast<std::ptrdiff_t>(delays.size() / 2);
  std::nth_element(delays.begin(), middle, delays.end());
  if (*middle > kLongQueueNs || *middle < -kOneClockNs) {
    return *std::min_element(delays.begin(), delays.end());
  }
  return 0;
}

namespace {

constexpr std::string_view kOperatorFlow = "async_npu";

/// An end of something, by what ties it to the other end.
struct End {
  std::int64_t id = 0;
  Row row = 0;

  friend auto operator<=>(const End&, const End&) = default;
};

/// A place in the timeline: an event begins on a lane.
struct Place {
  std::uint32_t lane = 0;
  std::int64_t start_ns = 0;
  Row row = 0;

  auto key() const noexcept { return std::pair(lane, start_ns); }
};

bool is_earlier_elsewhere(const Columns& columns, Row from, Row work) {
  return columns.start_ns[from] < columns.start_ns[work] && columns.lane[from] != columns.lane[work];
}

std::vector<Handover> queue_handovers(const Columns& columns) {
  std::vector<Handover> found;
  const ArgumentColumn* ids = columns.argument("correlation_id");
  const Names::Id enqueue = columns.names.find(ascend::kEnqueue);
  const Names::Id dequeue = columns.names.find(ascend::kDequeue);
  if (ids == nullptr || enqueue == Names::missing || dequeue == Names::missing) return found;
  std::vector<End> puts;
  std::vector<End> takes;
  for (std::size_t i = 0; i < ids->rows.size(); ++i) {
    const Row row = ids->rows[i];
    if (columns.phase[row] != 'X') continue;
    if (columns.category[row] == enqueue) puts.push_back({ids->integers[i], row});
    if (columns.category[row] == dequeue) takes.push_back({ids->integers[i], row});
  }
  std::sort(puts.begin(), puts.end());
  for (const End& take : takes) {
    const auto put = std::lower_bound(puts.begin(), puts.end(), End{take.id, 0});
    if (put == puts.end() || put->id != take.id) continue;
    if (is_earlier_elsewhere(columns, put->row, take.row)) found.push_back({take.row, put->row});
  }
  return found;
}

/// JAX and TensorFlow: the event that asks for work and the one that does it say the same type and number.
std::vector<Handover> context_handovers(const Columns& columns) {
  std::vector<Handover> found;
  const ArgumentColumn* const producers = columns.argument("_p");
  const ArgumentColumn* const producer_types = columns.argument("_pt");
  const ArgumentColumn* const consumers = columns.argument("_c");
  const ArgumentColumn* const consumer_types = columns.argument("_ct");
  if (producers == nullptr || producer_types == nullptr || consumers == nullptr || consumer_types == nullptr)
    return found;
  struct Asked {
    std::int64_t type = 0;
    std::int64_t id = 0;
    std::int64_t at_ns = 0;
    Row row = 0;

    auto operator<=>(const Asked&) const = default;
  };
  std::vector<Asked> asked;
  for (std::size_t i = 0; i < producers->rows.size(); ++i) {
    const Row row = producers->rows[i];
    if (const auto type = integer_at(producer_types, row))
      asked.push_back({*type, producers->integers[i], columns.start_ns[row], row});
  }
  std::sort(asked.begin(), asked.end());
  for (std::size_t i = 0; i < consumers->rows.size(); ++i) {
    const Row row = consumers->rows[i];
    const auto type = integer_at(consumer_types, row);
    if (!type || columns.phase[row] != 'X') continue;
    // Numbers are used again: the last one that asked before.
    const Asked last{*type, consumers->integers[i], columns.start_ns[row], 0};
    const auto behind = std::lower_bound(asked.begin(), asked.end(), last);
    if (behind == asked.begin()) continue;
    const Asked& from = *std::prev(behind);
    if (from.type == last.type && from.id == last.id && is_earlier_elsewhere(columns, from.row, row))
      found.push_back({row, from.row});
  }
  return found;
}

std::vector<Place> places_of(const Columns& columns, const std::vector<EventKind>& kinds, bool on_device) {
  std::vector<Place> places;
  for (Row row = 0; row < columns.size(); ++row) {
    const bool wanted = on_device ? is_device_work(kinds[row]) : kinds[row] == EventKind::operation;
    if (wanted) places.push_back({columns.lane[row], columns.start_ns[row], row});
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.key() < b.key(); });
  return places;
}

/// The last of the events that begin there: the innermost of nested operators stands behind the others.
Row row_at(const std::vector<Place>& places, const Columns& columns, Row flow) {
  const std::pair key(columns.lane[flow], columns.start_ns[flow]);
  const auto behind = std::upper_bound(places.begin(), places.end(), key,
                                       [](const auto& at, const Place& place) { return at < place.key(); });
  if (behind == places.begin() || std::prev(behind)->key() != key) return kNoRow;
  return std::prev(behind)->row;
}

std::vector<Handover> flow_handovers(const Columns& columns, const std::vector<EventKind>& kinds,
                                     const Correlation& correlation) {
  std::vector<Handover> found;
  const Names::Id category = columns.names.find(kOperatorFlow);
  if (category == Names::missing) return found;
  std::vector<End> begins;
  std::vector<End> ends;
  for (std::size_t i = 0; i < columns.flow_id.rows.size(); ++i) {
    const Row row = columns.flow_id.rows[i];
    if (columns.category[row] != category) continue;
    if (columns.phase[row] == 's') begins.push_back({columns.flow_id.integers[i], row});
    if (columns.phase[row] == 'f') ends.push_back({columns.flow_id.integers[i], row});
  }
  if (begins.empty() || ends.empty()) return found;
  const std::vector<Place> operators = places_of(columns, kinds, false);
  const std::vector<Place> works = places_of(columns, kinds, true);
  std::sort(begins.begin(), begins.end());
  for (const End& end : ends) {
    const auto begin = std::lower_bound(begins.begin(), begins.end(), End{end.id, 0});
    if (begin == begins.end() || begin->id != end.id) continue;
    const Row work = row_at(works, columns, end.row);
    const Row from = row_at(operators, columns, begin->row);
    const Row launch = work == kNoRow ? kNoRow : correlation.launch_of(work);
    if (launch == kNoRow || from == kNoRow) continue;
    if (is_earlier_elsewhere(columns, from, launch)) found.push_back({launch, from});
  }
  return found;
}

}  // namespace

std::vector<Handover> handovers_of(const Columns& columns, const std::vector<EventKind>& kinds,
                                   const Correlation& correlation) {
  std::vector<Handover> found = queue_handovers(columns);
  if (found.empty()) found = context_handovers(columns);
  return found.empty() ? flow_handovers(columns, kinds, correlation) : found;
}

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
