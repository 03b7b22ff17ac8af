#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/xplane/kinds.h"

namespace headrace::trace::xplane {
namespace {

/// Facts of a timeline's row.
struct LaneFacts {
  PlaneName plane;
  LineKind line = LineKind::repeats;
  std::int64_t stream = kAbsent;
  bool is_python = false;
};

LaneFacts facts_of(const Lane& lane) {
  LaneFacts facts;
  facts.plane = plane_of(lane.process_name);
  facts.line = line_of(lane.thread_name);
  facts.is_python = lane.thread_name.starts_with("python");
  if (facts.line == LineKind::operations) facts.stream = 0;
  if (facts.line == LineKind::asynchronous) facts.stream = 1;
  if (facts.line == LineKind::stream) facts.stream = stream_of(lane.thread_name).value_or(kAbsent);
  return facts;
}

class JsonAdoption {
 public:
  explicit JsonAdoption(Columns& columns) : columns_(columns) {
    for (Lane& lane : columns_.lanes) {
      lanes_.push_back(facts_of(lane));
      const PlaneName& plane = lanes_.back().plane;
      if (plane.kind == PlaneKind::device)
        lane.process_labels = std::string(plane.device_kind) + " " + std::to_string(plane.device);
      if (plane.kind == PlaneKind::host) lane.process_labels = "CPU";
    }
  }

  void run() {
    const ArgumentColumn* const correlations = columns_.argument("correlation_id");
    ArgumentColumn* const devices = columns_.argument("device");
    const ArgumentColumn* const copies = columns_.argument(kCopyDetails);
    ArgumentColumn* const bytes = columns_.argument("bytes");
    CompactIntegers streams;
    CompactIntegers correlated;
    for (Row row = 0; row < columns_.size(); ++row) {
      const LaneFacts& lane = lanes_[columns_.lane[row]];
      std::int64_t stream = columns_.stream[row];
      std::int64_t correlation = columns_.correlation[row];
      if (columns_.phase[row] == 'X' && lane.plane.kind != PlaneKind::other) {
        categorise(row, lane);
        correlation = integer_at(correlations, row).value_or(correlation);
        if (lane.plane.kind == PlaneKind::device) {
          stream = lane.stream;
          add(devices, row, lane.plane.device);
          if (const auto size = bytes_in(text_at(columns_, copies, row))) add(bytes, row, *size);
        } else if (columns_.duration_ns[row] == 0) {
          columns_.phase[row] = 'i';
        }
      }
      streams.push_back(stream);
      correlated.push_back(correlation);
    }
    columns_.stream = std::move(streams);
    columns_.correlation = std::move(correlated);
  }

 private:
  bool has(std::string_view argument, Row row) const {
    const ArgumentColumn* const column = columns_.argument(argument);
    return column != nullptr && column->find(row).has_value();
  }

  /// Only behind all rows that have it already.
  static void add(ArgumentColumn* column, Row row, std::int64_t value) {
    if (column == nullptr || (!column->rows.empty() && column->rows.back() >= row)) return;
    column->rows.push_back(row);
    column->integers.push_back(value);
  }

  void categorise(Row row, const LaneFacts& lane) {
    EventSigns signs;
    signs.has_step = has(kStepNumber, row);
    signs.has_correlation = has("correlation_id", row);
    signs.has_stats = has(kProducer, row) || has(kConsumer, row) || has(kIterator, row);
    signs.is_copy = has(kCopyDetails, row);
    signs.is_fill = has(kFillDetails, row);
    signs.hlo_category = text_at(columns_, columns_.argument(kOperationKind), row);
    const std::string_view name = columns_.name_of(row);
    const std::string_view category = lane.plane.kind == PlaneKind::host
                                          ? host_category(name, lane.is_python, signs)
                                          : device_category(name, lane.line, signs);
    columns_.category[row] = columns_.names.intern(category);
  }

  Columns& columns_;
  std::vector<LaneFacts> lanes_;
};

}  // namespace

bool is_trace_json(const Columns& columns) noexcept {
  return std::any_of(columns.lanes.begin(), columns.lanes.end(),
                     [](const Lane& lane) { return plane_of(lane.process_name).kind != PlaneKind::other; });
}

void adopt_trace_json(Columns& columns) { JsonAdoption(columns).run(); }

}  // namespace headrace::trace::xplane
