// Perfetto's own format (`*.pftrace`, `*.perfetto-trace`): events of tracks, as rocprofv3 and others write
// them.
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "headrace/trace/event_kind.h"
#include "trace/input.h"
#include "trace/perfetto/sequence.h"
#include "trace/process_trace.h"
#include "trace/rocm/names.h"
#include "trace/wire.h"

namespace headrace::trace::perfetto {
namespace {

/// Content of `compressed`, which zlib compressed as a whole; nothing if it is damaged or has more than
/// `most` bytes.
std::optional<std::string> inflated_block(std::string_view compressed, std::size_t most) {
  if (compressed.size() > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_ZLIB;
  std::string input(compressed);  // the library takes bytes that it could write to
  state.next_in = reinterpret_cast<std::uint8_t*>(input.data());
  state.avail_in = static_cast<std::uint32_t>(input.size());
  std::string bytes;
  constexpr std::size_t kChunk = std::size_t{256} << 10;
  while (state.block_state != ISAL_BLOCK_FINISH) {
    const std::size_t size = bytes.size();
    if (size >= most) return std::nullopt;
    bytes.resize(size + kChunk);
    state.next_out = reinterpret_cast<std::uint8_t*>(bytes.data() + size);
    state.avail_out = static_cast<std::uint32_t>(kChunk);
    const int error = isal_inflate(&state);
    bytes.resize(bytes.size() - state.avail_out);
    const bool stuck = bytes.size() == size && state.block_state != ISAL_BLOCK_FINISH;
    if (error < ISAL_DECOMP_OK || stuck) return std::nullopt;
  }
  return bytes;
}

constexpr int kPacketsOfTrace = 1;
enum PacketField {
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kIncrementalStateCleared = 41,
  kCompressedPackets = 50,
  kClockOfTimestamp = 58,
  kDefaults = 59,
  kTrackDescriptor = 60
};
enum EventField {
  kAnnotations = 4,
  kType = 9,
  kNameId = 10,
  kTrackOfEvent = 11,
  kCategory = 22,
  kName = 23,
  kCategoryId = 3
};
enum EventType : std::uint64_t { kBegin = 1, kEnd = 2, kInstant = 3 };
enum DescriptorField { kUuid = 1, kTrackName = 2, kProcess = 3, kThread = 4, kParent = 5, kStaticName = 10 };
enum AnnotationField {
  kAnnotationNameId = 1,
  kUnsigned = 3,
  kSigned = 4,
  kReal = 5,
  kText = 6,
  kPointer = 7,
  kAnnotationName = 10,
  kTextId = 17
};
constexpr std::uint64_t kStateCleared = 1;
/// Compressed packets do not hold compressed ones.
constexpr std::size_t kMostInflated = std::size_t{256} << 20;

struct Track {
  std::string name;
  std::uint64_t parent = 0;
  std::int64_t pid = -1;
  std::int64_t tid = -1;
  std::int64_t number = 0;  ///< in the order of first use
};

/// Annotations of an event.
struct Annotated {
  std::vector<std::pair<std::string, std::int64_t>> numbers;

  std::optional<std::int64_t> number(std::string_view name) const {
    const auto at =
        std::find_if(numbers.begin(), numbers.end(), [&](const auto& each) { return each.first == name; });
    return at == numbers.end() ? std::nullopt : std::optional(at->second);
  }
};

/// A beginning that waits for its end.
struct OpenEvent {
  EventRow row;
  std::int64_t device = 0;
  bool is_timed = false;  ///< it said its times and was added
  Annotated said;
};

/// The 12 of "[ 12 ]" behind `word` in `name`.
std::optional<std::int64_t> bracketed(std::string_view name, std::string_view word) {
  const std::size_t at = name.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t begin = name.find_first_of("0123456789", name.find('[', at));
  std::int64_t number = 0;
  if (begin == std::string_view::npos) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data() + begin, name.data() + name.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

class PerfettoReader {
 public:
  PerfettoReader(const Input& input, const ReadOptions& options)
      : process_(input.path(), 0, options), bytes_(read_whole(input, options, process_.file.notes.damage)) {}

  std::vector<TraceFile> run() {
    ReadNotes& notes = process_.file.notes;
    Fields trace(bytes_);
    while (trace.next()) {
      if (trace.number() == kPacketsOfTrace) read_packet(trace.bytes(), true);
    }
    notes.bytes = bytes_.size();
    if (trace.damaged() || damaged_) {
      notes.cut = true;
      notes.cut_where = "inside a packet";
      notes.cut_offset = bytes_.size() - trace.rest().size();
    }
    std::size_t open = 0;
    for (const auto& [track, events] : open_) {
      for (const OpenEvent& event : events) open += event.is_timed ? 0 : 1;
    }
    if (open > 0)
      notes.remarks.push_back(std::to_string(open) + " events have no end in the file: they are left out");
    if (others_ > 0)
      notes.remarks.push_back(
          std::to_string(others_) +
          " packets hold no events of tracks (of the system, or settings): they are not read");
    const auto say = [&](std::uint64_t count, const char* what) {
      if (count > 0) notes.remarks.push_back(std::to_string(count) + what);
    };
    say(values_, " values of counters and events of older kinds are not read");
    say(ends_, " events have no beginning in the file: they are left out");
    say(too_deep_, " events lie in more than a thousand others: they are left out");
    std::vector<TraceFile> traces;
    traces.push_back(std::move(process_.file));
    return traces;
  }

 private:
  struct Packet {
    std::int64_t stamp = 0;
    std::uint64_t clock = 0;
    std::uint64_t sequence = 0;
    std::string_view event;
    std::string_view descriptor;
    std::string_view interned;
    std::string_view clocks;
    std::string_view defaults;
    std::string_view compressed;
    bool has_event = false;
    bool clears = false;
    bool is_known = false;
  };

  static constexpr std::array<std::pair<int, std::string_view Packet::*>, 5> kParts = {
      {{kTrackDescriptor, &Packet::descriptor},
       {kInternedData, &Packet::interned},
       {kClockSnapshot, &Packet::clocks},
       {kDefaults, &Packet::defaults},
       {kCompressedPackets, &Packet::compressed}}};

  void read_packet(std::string_view message, bool may_be_compressed) {
    Packet packet;
    Fields fields(message);
    while (fields.next()) {
      switch (fields.number()) {
        case kTimestamp:
          packet.stamp = fields.integer();
          break;
        case kClockOfTimestamp:
          packet.clock = fields.bits();
          break;
        case kSequenceId:
          packet.sequence = fields.bits();
          break;
        case kSequenceFlags:
          packet.clears |= (fields.bits() & kStateCleared) != 0;
          break;
        case kIncrementalStateCleared:
          packet.clears |= fields.bits() != 0;
          break;
        case kTrackEvent:
          packet.event = fields.bytes();
          packet.has_event = packet.is_known = true;
          break;
        default:
          for (const auto& [number, part] : kParts) {
            if (fields.number() != number) continue;
            packet.*part = fields.bytes();
            packet.is_known = true;
          }
      }
    }
    damaged_ |= fields.damaged();
    if (!packet.is_known && !packet.clears) ++others_;
    if (!packet.compressed.empty() && may_be_compressed) read_compressed(packet.compressed);
    Sequence& sequence = sequences_[packet.sequence];
    if (packet.clears) sequence.forget();
    if (!packet.clocks.empty()) {
      set_clocks(packet.clocks, sequence.clocks);
      set_clocks(packet.clocks, clocks_);
    }
    if (!packet.defaults.empty()) sequence.set_defaults(packet.defaults);
    if (!packet.interned.empty()) sequence.learn(packet.interned);
    if (!packet.descriptor.empty()) read_descriptor(packet.descriptor);
    if (packet.has_event)
      read_event(packet.event, sequence, sequence.time_ns(packet.stamp, packet.clock, clocks_));
  }

  void read_compressed(std::string_view bytes) {
    const std::optional<std::string> inflated = inflated_block(bytes, kMostInflated);
    damaged_ |= !inflated;
    if (!inflated) return;
    Fields packets(*inflated);
    while (packets.next()) {
      if (packets.number() == kPacketsOfTrace) read_packet(packets.bytes(), false);
    }
    damaged_ |= packets.damaged();
  }

  Track& track_of(std::uint64_t uuid) {
    const auto [at, is_new] = tracks_.try_emplace(uuid);
    if (is_new) at->second.number = static_cast<std::int64_t>(tracks_.size());
    return at->second;
  }

  void read_descriptor(std::string_view message) {
    std::uint64_t uuid = 0;
    Track found;
    Fields fields(message);
    while (fields.next()) {
      if (fields.number() == kUuid) uuid = fields.bits();
      if (fields.number() == kTrackName || fields.number() == kStaticName) found.name = fields.bytes();
      if (fields.number() == kParent) found.parent = fields.bits();
      if (fields.number() != kThread && fields.number() != kProcess) continue;
      constexpr int kThreadName = 5;
      constexpr int kProcessName = 6;
      const bool is_thread = fields.number() == kThread;
      Fields inner(fields.bytes());
      while (inner.next()) {
        if (inner.number() == 1) found.pid = inner.integer();
        if (is_thread && inner.number() == 2) found.tid = inner.integer();
        if (inner.number() == (is_thread ? kThreadName : kProcessName) && found.name.empty())
          found.name = inner.bytes();
      }
    }
    Track& track = track_of(uuid);
    found.number = track.number;
    track = std::move(found);
  }

  static std::string_view interned(const Sequence::NamesById& names, std::uint64_t id) {
    const auto at = names.find(id);
    return at == names.end() ? std::string_view("?") : std::string_view(at->second);
  }

  static void read_annotation(std::string_view message, const Sequence& sequence, Annotated& into) {
    std::string_view name;
    std::optional<std::int64_t> value;
    Fields fields(message);
    while (fields.next()) {
      if (fields.number() == kAnnotationNameId) name = interned(sequence.annotations, fields.bits());
      if (fields.number() == kAnnotationName) name = fields.bytes();
      if (fields.number() == kUnsigned || fields.number() == kSigned || fields.number() == kPointer)
        value = fields.integer();
      if (fields.number() != kText && fields.number() != kTextId) continue;
      // Some write numbers as texts.
      const std::string_view text =
          fields.number() == kText ? fields.bytes() : interned(sequence.texts, fields.bits());
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error == std::errc() && end == text.data() + text.size()) value = number;
    }
    if (value) into.numbers.emplace_back(name, *value);
  }

  void read_event(std::string_view message, const Sequence& sequence, std::int64_t ns) {
    std::uint64_t type = 0;
    std::uint64_t uuid = sequence.default_track;
    std::string_view name;
    std::string_view category;
    OpenEvent event;
    Fields fields(message);
    while (fields.next()) {
      if (fields.number() == kType) type = fields.bits();
      if (fields.number() == kTrackOfEvent) uuid = fields.bits();
      if (fields.number() == kName) name = fields.bytes();
      if (fields.number() == kNameId) name = interned(sequence.events, fields.bits());
      if (fields.number() == kCategory) category = fields.bytes();
      if (fields.number() == kCategoryId) category = interned(sequence.categories, fields.bits());
      if (fields.number() == kAnnotations) read_annotation(fields.bytes(), sequence, event.said);
    }
    damaged_ |= fields.damaged();
    if (type == kEnd) return end_event(uuid, ns);
    if (type != kBegin && type != kInstant) {
      ++values_;
      return;
    }
    const Track& track = track_of(uuid);
    event.row = row_of(track, name, category, event.said);
    event.device = device_of(track, event.said);
    event.row.start_ns = event.row.end_ns = ns;
    if (type == kInstant) event.row.phase = 'i';
    const auto begin = event.said.number("begin_ns");
    const auto end = event.said.number("end_ns");
    event.is_timed = type == kBegin && begin && end;
    if (event.is_timed) {
      event.row.start_ns = *begin;
      event.row.end_ns = *end;
    }
    if (event.is_timed || type == kInstant) add(event);
    constexpr std::size_t kDeepest = 1000;
    if (type != kBegin) return;
    std::vector<OpenEvent>& open = open_[uuid];
    if (open.size() < kDeepest) {
      open.push_back(std::move(event));
    } else {
      ++too_deep_;
    }
  }

  void end_event(std::uint64_t uuid, std::int64_t ns) {
    std::vector<OpenEvent>& open = open_[uuid];
    if (open.empty()) {
      ++ends_;
      return;
    }
    OpenEvent event = std::move(open.back());
    open.pop_back();
    if (event.is_timed) return;
    event.row.end_ns = ns;
    add(event);
  }

  EventRow row_of(const Track& track, std::string_view name, std::string_view category,
                  const Annotated& said) {
    EventRow row;
    std::string kind(category);
    std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return std::toupper(c); });
    if (category == "kernel_dispatch") category = "kernel";
    if (category == "memory_copy") category = "gpu_memcpy";
    if (const auto call = rocm::call_category(kind)) category = *call;
    if (kind_of_category(category) == EventKind::other) category = "user_annotation";
    const bool works = is_on_device(kind_of_category(category));
    row.category = process_.intern(category);
    row.name = process_.intern(category == "gpu_memcpy" ? rocm::copy_name(name) : std::string(name));
    row.correlation = first_of(said, {"corr_id", "correlation", "correlation_id"});
    if (works) {
      row.stream = first_of(said, {"stream", "stream_ID", "stream_id"});
      if (row.stream == kAbsent)
        row.stream = bracketed(track.name, "STREAM").value_or(first_of(said, {"queue"}));
      row.lane = process_.device_lane(device_of(track, said), row.stream);
    } else {
      row.lane = process_.thread_lane(track.number, track.name.empty() ? "track" : track.name);
    }
    return row;
  }

  static std::int64_t first_of(const Annotated& said, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      if (const auto number = said.number(name)) return *number;
    }
    return kAbsent;
  }
  static std::int64_t device_of(const Track& track, const Annotated& said) {
    const std::int64_t device = first_of(said, {"device", "agent"});
    if (device >= 0) return device;
    return bracketed(track.name, "GPU").value_or(0);
  }

  void add(const OpenEvent& event) {
    const EventKind kind = kind_of_category(process_.file.columns.names[event.row.category]);
    process_.calls |= kind == EventKind::runtime;
    if (!(is_device_work(kind) ? process_.add_work(event.row, event.device) : process_.rows.add(event.row)))
      return;
    if (const auto bytes = event.said.number("size")) process_.rows.integer("bytes", *bytes);
    for (const auto& [name, value] : event.said.numbers) process_.rows.integer(name, value);
  }

  ProcessTrace process_;
  std::string bytes_;
  std::unordered_map<std::uint64_t, Sequence> sequences_;
  std::unordered_map<std::uint64_t, Track> tracks_;
  std::unordered_map<std::uint64_t, std::vector<OpenEvent>> open_;
  Clocks clocks_;  ///< of the machine: a writer that sent no snapshot has them from another
  std::uint64_t others_ = 0;
  std::uint64_t values_ = 0;  ///< of counters, and events of kinds that are not read
  std::uint64_t ends_ = 0;    ///< without a beginning
  std::uint64_t too_deep_ = 0;
  bool damaged_ = false;
};

/// Read after XPlane, whose planes look alike at first. A packet that is not all there is judged by its first
/// field.
bool is_perfetto(const Input& input) {
  if (input.has_database() || input.begins_as_json() || !input.beginning().starts_with('\n')) return false;
  const FirstMessage packet = first_message(input.beginning());
  Fields fields(packet.bytes);
  constexpr std::array<int, 11> kFirst = {kClockSnapshot,
                                          kTimestamp,
                                          kSequenceId,
                                          kTrackEvent,
                                          kInternedData,
                                          kSequenceFlags,
                                          kIncrementalStateCleared,
                                          kCompressedPackets,
                                          kClockOfTimestamp,
                                          kDefaults,
                                          kTrackDescriptor};
  if (!packet.is_whole)
    return std::find(kFirst.begin(), kFirst.end(), first_key(packet.bytes)) != kFirst.end();
  while (fields.next()) {
  }
  return !fields.damaged() && !packet.bytes.empty();
}

/// One trace, which is read whole, perhaps inflated. Begin and end of a track's events are paired; an event
/// that says its own times (`begin_ns`, `end_ns`, as rocprofv3's do) has those, because it cuts kernels that
/// overlap. Categories of PyTorch's profiler and of rocprofv3 say what an event is; others are annotations of
/// their thread. Annotations of an event are arguments. Data of the kernel and of Android is left out with a
/// remark. Throws FormatError; a file that is damaged gives what is before that.
std::vector<TraceFile> read_perfetto(Input& input, const ReadOptions& options) {
  return PerfettoReader(input, options).run();
}

}  // namespace
}  // namespace headrace::trace::perfetto

const headrace::trace::Format headrace::trace::kPerfetto{"Perfetto", false, perfetto::is_perfetto,
                                                         perfetto::read_perfetto};
