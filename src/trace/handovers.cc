#include "headrace/trace/handovers.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "headrace/trace/ascend/categories.h"

namespace headrace::trace {
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

}  // namespace headrace::trace
