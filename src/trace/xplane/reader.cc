// XPlane: what the profilers of JAX, TensorFlow and PyTorch/XLA write (`*.xplane.pb`).
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/profile/errors.h"
#include "trace/event_rows.h"
#include "trace/input.h"
#include "trace/process_trace.h"
#include "trace/wire.h"
#include "trace/xplane/kinds.h"

namespace headrace::trace::xplane {
namespace {

// Numbers of fields; those of a map's entry are the same in every map.
enum PlaneField { kPlaneName = 2, kLines = 3, kEventMetadata = 4, kStatMetadata = 5, kPlaneStats = 6 };
enum LineField { kLineId = 1, kLineName = 2, kTimestamp = 3, kDisplayName = 11 };
enum EventField { kMetadataId = 1, kOffset = 2, kDuration = 3, kEventStats = 4, kOccurrences = 5 };
enum StatField { kStatId = 1, kText = 5, kBytes = 6, kReference = 7 };
enum MetadataField { kId = 1, kName = 2, kShownName = 4, kMetadataStats = 5 };
constexpr int kValueOfEntry = 2;

/// A value beside an event, by the name of its kind. Texts lie in the file's bytes.
struct Stat {
  std::string_view name;
  std::int64_t number = 0;
  std::string_view text;
};

/// Data shared by events of one kind.
struct EventMetadata {
  std::string_view name;
  std::string_view display_name;
  std::vector<Stat> stats;
};

/// Views into the bytes that it was made of. Where a message is damaged, what stands before that is there.
class Plane {
 public:
  explicit Plane(std::string_view message) {
    // Names may stand behind what uses them.
    std::vector<std::string_view> metadata;
    std::vector<std::string_view> own;
    Fields fields(message);
    while (fields.next()) {
      if (fields.number() == kPlaneName) name = fields.bytes();
      if (fields.number() == kLines) lines.push_back(fields.bytes());
      if (fields.number() == kEventMetadata) metadata.push_back(fields.bytes());
      if (fields.number() == kStatMetadata) read_stat_names(fields.bytes());
      if (fields.number() == kPlaneStats) own.push_back(fields.bytes());
    }
    damaged_ |= fields.damaged();
    for (const std::string_view entry : metadata) read_metadata(entry);
    for (const std::string_view stat : own) stats.push_back(stat_of(stat, damaged_));
  }

  std::string_view name;
  std::vector<Stat> stats;
  std::vector<std::string_view> lines;  ///< messages

  /// Metadata without a name if the event names none.
  const EventMetadata& metadata_of(std::int64_t id) const noexcept {
    const auto found = metadata_.find(id);
    return found == metadata_.end() ? unknown_ : found->second;
  }
  Stat stat_of(std::string_view message, bool& damaged) const noexcept {
    Stat stat;
    Fields fields(message);
    const auto name_of = [&](std::int64_t id) {
      const auto found = stat_names_.find(id);
      return found == stat_names_.end() ? std::string_view() : found->second;
    };
    while (fields.next()) {
      if (fields.number() == kStatId) {
        stat.name = name_of(fields.integer());
      } else if (fields.number() == kText || fields.number() == kBytes) {
        stat.text = fields.bytes();
      } else if (fields.number() == kReference) {
        stat.text = name_of(fields.integer());
      } else {
        stat.number = fields.integer();
      }
    }
    damaged |= fields.damaged();
    return stat;
  }
  bool damaged() const noexcept { return damaged_; }

 private:
  void read_stat_names(std::string_view message) {
    Fields entry(message);
    while (entry.next()) {
      if (entry.number() != kValueOfEntry) continue;
      std::int64_t id = 0;
      std::string_view name_of_stat;
      Fields value(entry.bytes());
      while (value.next()) {
        if (value.number() == kId) id = value.integer();
        if (value.number() == kName) name_of_stat = value.bytes();
      }
      stat_names_.emplace(id, name_of_stat);
    }
    damaged_ |= entry.damaged();
  }
  void read_metadata(std::string_view message) {
    Fields entry(message);
    while (entry.next()) {
      if (entry.number() != kValueOfEntry) continue;
      std::int64_t id = 0;
      EventMetadata found;
      Fields value(entry.bytes());
      while (value.next()) {
        if (value.number() == kId) id = value.integer();
        if (value.number() == kName) found.name = value.bytes();
        if (value.number() == kShownName) found.display_name = value.bytes();
        if (value.number() == kMetadataStats) found.stats.push_back(stat_of(value.bytes(), damaged_));
      }
      damaged_ |= value.damaged();
      metadata_.emplace(id, std::move(found));
    }
    damaged_ |= entry.damaged();
  }

  std::unordered_map<std::int64_t, std::string_view> stat_names_;
  std::unordered_map<std::int64_t, EventMetadata> metadata_;
  EventMetadata unknown_;
  bool damaged_ = false;
};

/// A line without its events.
struct LineHead {
  std::int64_t id = 0;
  std::string_view name;
  std::int64_t timestamp_ns = 0;
};

LineHead head_of(std::string_view line) {
  LineHead head;
  std::string_view shown;
  Fields fields(line);
  while (fields.next()) {
    if (fields.number() == kLineId) head.id = fields.integer();
    if (fields.number() == kLineName) head.name = fields.bytes();
    if (fields.number() == kTimestamp) head.timestamp_ns = fields.integer();
    if (fields.number() == kDisplayName) shown = fields.bytes();
  }
  if (head.name.empty()) head.name = shown;
  return head;
}

/// An event; picoseconds since its line's time.
struct PlaneEvent {
  std::int64_t metadata = 0;
  std::int64_t offset_ps = 0;
  std::int64_t duration_ps = 0;
  /// It stands for several, at no time.
  bool is_count = false;
  std::vector<std::string_view> stats;  ///< messages
};

/// Into `event`, whose memory is used again. False if the message is damaged.
bool read_event(std::string_view message, PlaneEvent& event) {
  event.metadata = event.offset_ps = event.duration_ps = 0;
  event.is_count = false;
  event.stats.clear();
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == kMetadataId) event.metadata = fields.integer();
    if (fields.number() == kOffset) event.offset_ps = fields.integer();
    if (fields.number() == kDuration) event.duration_ps = fields.integer();
    if (fields.number() == kOccurrences) event.is_count = true;
    if (fields.number() == kEventStats) event.stats.push_back(fields.bytes());
  }
  return !fields.damaged();
}

/// The number of the field of a line that holds its events.
inline constexpr int kEventOfLine = 4;

constexpr int kPlanesOfSpace = 1;
constexpr std::int64_t kPicoseconds = 1000;

/// A loop is an operation around those of its body: what counts for it is the time in which none of them
/// runs. So no moment counts twice, and all of it counts.
class NestedOperations {
 public:
  void add(const EventRow& row) { rows_.push_back(row); }

  /// Calls `use` with operations that hold none and with the pieces of the others, each of them longer than
  /// nothing but for operations that are so themselves.
  template <class Use>
  void each_piece(Use&& use) {
    std::stable_sort(rows_.begin(), rows_.end(), [](const EventRow& a, const EventRow& b) {
      return std::tuple(a.start_ns, -a.end_ns) < std::tuple(b.start_ns, -b.end_ns);
    });
    std::vector<Open> open;
    const auto close = [&] {
      const Open& top = open.back();
      EventRow row = top.row;
      row.start_ns = top.from_ns;
      if (!top.holds || row.start_ns < row.end_ns) use(row);
      open.pop_back();
    };
    for (const EventRow& row : rows_) {
      while (!open.empty() && open.back().row.end_ns <= row.start_ns) close();
      if (!open.empty()) {
        Open& around = open.back();
        EventRow before = around.row;
        before.start_ns = around.from_ns;
        before.end_ns = row.start_ns;
        if (before.start_ns < before.end_ns) use(before);
        around.from_ns = row.end_ns > around.from_ns ? row.end_ns : around.from_ns;
        around.holds = true;
      }
      open.push_back({row, row.start_ns, false});
    }
    while (!open.empty()) close();
    rows_.clear();
  }

 private:
  struct Open {
    EventRow row;
    std::int64_t from_ns = 0;  ///< what counts up to here is said
    bool holds = false;
  };

  std::vector<EventRow> rows_;
};

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

/// The trace of one host with its devices, which is read whole, perhaps inflated. Work, copies and fills are
/// on the streams of GPUs, with the calls that started them; of a TPU its operations (what holds others, as a
/// loop does, counts where none of them runs) and beside them what runs asynchronously. Events of the host
/// are calls, operators, Python's functions or annotations by what they say (kinds.h); those with `step_num`
/// are steps. Picoseconds are cut to nanoseconds at both ends. Throws FormatError; a file that is damaged
/// gives what is before that.
std::vector<TraceFile> read_xplane(Input& input, const ReadOptions& options) {
  return XPlaneReader(input, options).run();
}

}  // namespace
}  // namespace headrace::trace::xplane

const headrace::trace::Format headrace::trace::kXPlane{"XPlane", false, xplane::is_xplane,
                                                       xplane::read_xplane};
