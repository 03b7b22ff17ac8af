#include "trace/xplane/reader.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "headrace/profile/errors.h"
#include "trace/process_trace.h"
#include "trace/whole_file.h"
#include "trace/wire.h"
#include "trace/xplane/arguments.h"
#include "trace/xplane/kinds.h"
#include "trace/xplane/nested_operations.h"
#include "trace/xplane/plane.h"

namespace headrace::trace::xplane {
namespace {

constexpr int kPlanesOfSpace = 1;
constexpr std::int64_t kPicoseconds = 1000;

class XPlaneReader {
 public:
  XPlaneReader(const Input& input, const ReadOptions& options)
      : options_(with_arguments(options)),
        process_(input.path(), 0, options_),
        bytes_(read_whole(input, options, notes().damage)) {}

  std::vector<TraceFile> run() {
    Fields space(bytes_);
    while (space.next()) {
      if (space.number() == kPlanesOfSpace) read_plane(Plane(space.bytes()));
    }
    if (damaged_ || space.damaged()) notes().cut = true;
    if (notes().cut && process_.file.columns.size() == 0 && bytes_.find("\xEF\xBF\xBD") != std::string::npos)
      throw FormatError(process_.file.path,
                        "damaged: an editor or a conversion of line ends replaced bytes by U+FFFD");
    if (notes().cut) {
      notes().cut_where = "inside a message";
      notes().cut_offset = bytes_.size() - space.rest().size();
    }
    notes().bytes = bytes_.size();
    if (counts_ > 0)
      notes().remarks.push_back(std::to_string(counts_) +
                                " events are counts without a time: they are left out");
    std::vector<TraceFile> traces;
    traces.push_back(std::move(process_.file));
    return traces;
  }

 private:
  ReadNotes& notes() { return process_.file.notes; }

  void read_plane(const Plane& plane) {
    damaged_ |= plane.damaged();
    for (const Stat& stat : plane.stats) {
      if (stat.name == "profile_start_time") process_.file.base_time_ns = stat.number;
    }
    const PlaneName kind = plane_of(plane.name);
    for (const std::string_view line : plane.lines) {
      const LineHead head = head_of(line);
      ++lines_;
      if (kind.kind == PlaneKind::host)
        read_events(plane, line, [&](const PlaneEvent& event) { add_host_event(plane, head, event); });
      if (kind.kind == PlaneKind::device) read_device_line(plane, kind, line, head);
    }
  }

  template <class Add>
  void read_events(const Plane&, std::string_view line, Add&& add) {
    Fields fields(line);
    while (fields.next()) {
      if (fields.number() != kEventOfLine) continue;
      if (!read_event(fields.bytes(), event_)) damaged_ = true;
      if (event_.is_count) {
        ++counts_;
      } else {
        add(event_);
      }
    }
    damaged_ |= fields.damaged();
  }

  /// Its stats; the event's own before those of its kind.
  void find_stats(const Plane& plane, const EventMetadata& kind, const PlaneEvent& event) {
    stats_.clear();
    for (const std::string_view each : event.stats) stats_.push_back(plane.stat_of(each, damaged_));
    stats_.insert(stats_.end(), kind.stats.begin(), kind.stats.end());
  }

  const Stat* stat(std::string_view name) const noexcept {
    const auto at =
        std::find_if(stats_.begin(), stats_.end(), [&](const Stat& each) { return each.name == name; });
    return at == stats_.end() ? nullptr : &*at;
  }

  EventSigns signs() const noexcept {
    EventSigns found;
    found.has_stats = !stats_.empty();
    for (const Stat& each : stats_) {
      found.has_step |= each.name == "step_num";
      found.has_correlation |= each.name == "correlation_id";
      found.is_copy |= each.name == "memcpy_details";
      found.is_fill |= each.name == "memset_details";
      if (each.name == "hlo_category") found.hlo_category = each.text;
    }
    return found;
  }

  static EventRow times_of(const LineHead& line, const PlaneEvent& event) {
    EventRow row;
    row.start_ns = line.timestamp_ns + event.offset_ps / kPicoseconds;
    // Nobody's clock counts as far as a sum of two of these.
    row.end_ns =
        line.timestamp_ns + static_cast<std::int64_t>((static_cast<std::uint64_t>(event.offset_ps) +
                                                       static_cast<std::uint64_t>(event.duration_ps)) /
                                                      kPicoseconds);
    return row;
  }

  void add_arguments() {
    for (const Stat& each : stats_) {
      const std::string_view argument = argument_of(each.name);
      if (argument.empty()) continue;
      if (each.text.empty()) {
        process_.rows.integer(argument, each.number);
      } else {
        process_.rows.text(argument, process_.intern(each.text));
      }
    }
  }

  void add_host_event(const Plane& plane, const LineHead& line, const PlaneEvent& event) {
    const EventMetadata& kind = plane.metadata_of(event.metadata);
    find_stats(plane, kind, event);
    const bool is_python = line.name.starts_with("python");
    EventRow row = times_of(line, event);
    row.name = process_.intern(kind.name);
    row.category = process_.intern(host_category(kind.name, is_python, signs()));
    if (row.start_ns == row.end_ns) row.phase = 'i';
    if (const Stat* const correlation = stat("correlation_id")) row.correlation = correlation->number;
    row.lane = process_.thread_lane(lines_, line.name);
    if (process_.rows.add(row)) add_arguments();
  }

  void read_device_line(const Plane& plane, const PlaneName& device, std::string_view line,
                        const LineHead& head) {
    const LineKind kind = line_of(head.name);
    // Lines that are no stream have rows of their own.
    constexpr std::int64_t kBehindStreams = 1'000'000;
    const bool runs = kind == LineKind::operations || kind == LineKind::asynchronous;
    std::int64_t stream = stream_of(head.name).value_or(kBehindStreams + lines_);
    if (runs) stream = kind == LineKind::operations ? 0 : 1;
    process_.device_kind = std::string(device.device_kind);
    const std::uint32_t lane = process_.device_lane(device.device, stream, head.name);
    const bool has_stream = runs || kind == LineKind::stream;
    NestedOperations nested;
    read_events(plane, line, [&](const PlaneEvent& event) {
      const EventMetadata& metadata = plane.metadata_of(event.metadata);
      find_stats(plane, metadata, event);
      const std::string_view name =
          metadata.display_name.empty() ? operation_name(metadata.name) : metadata.display_name;
      EventRow row = times_of(head, event);
      row.name = process_.intern(name);
      row.category = process_.intern(device_category(name, kind, signs()));
      row.lane = lane;
      if (has_stream) row.stream = stream;
      if (const Stat* const correlation = stat("correlation_id")) row.correlation = correlation->number;
      if (kind == LineKind::operations) return nested.add(row);
      add_device_row(row, device.device, has_stream);
    });
    nested.each_piece([&](const EventRow& row) {
      stats_.clear();
      add_device_row(row, device.device, true);
    });
  }

  void add_device_row(const EventRow& row, std::int64_t device, bool works) {
    if (!(works ? process_.add_work(row, device) : process_.rows.add(row))) return;
    if (const Stat* const details = stat("memcpy_details")) {
      if (const auto bytes = bytes_in(details->text)) process_.rows.integer("bytes", *bytes);
    }
    if (!works && line_of(process_.file.columns.lanes[row.lane].thread_name) == LineKind::steps)
      add_step_number(row);
    add_arguments();
  }

  void add_step_number(const EventRow& row) {
    const std::string_view name = process_.file.columns.names[row.name];
    std::int64_t number = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc())
      process_.rows.integer(kStepNumber, number);
  }

  ReadOptions options_;
  ProcessTrace process_;
  std::string bytes_;
  PlaneEvent event_;
  std::vector<Stat> stats_;
  std::int64_t lines_ = 0;
  std::uint64_t counts_ = 0;
  bool damaged_ = false;
};

}  // namespace

/// The first field is a plane, and what it begins with are fields of a plane.
bool is_xplane(const Input& input) {
  constexpr int kLastOfPlane = 6;
  if (input.has_database() || input.begins_as_json() || !input.beginning().starts_with('\n')) return false;
  const std::string_view plane = first_message(input.beginning()).bytes;
  Fields fields(plane);
  int seen = 0;
  for (; fields.next(); ++seen) {
    const bool is_id = fields.number() == 1;
    if (fields.number() > kLastOfPlane || is_id != fields.is_number()) return false;
  }
  return seen > 0;
}

std::vector<TraceFile> read_xplane(Input& input, const ReadOptions& options) {
  return XPlaneReader(input, options).run();
}

}  // namespace headrace::trace::xplane
