// Text of events to rows of columns: the parser, the arguments that become columns, and the lanes.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/trace/columns.h"
#include "headrace/trace/read_notes.h"

namespace headrace::trace {

/// Maps keys to numbers. Built once, queried some ten times per event, mostly for unwanted keys.
class ArgumentTable {
 public:
  static constexpr int kUnknown = -1;

  /// Later entries of the same key are ignored.
  void add(std::string_view key, int number) {
    if (find(key) != kUnknown) return;
    if (4 * ++used_ > slots_.size()) {
      std::vector<Slot> old(2 * slots_.size());
      old.swap(slots_);
      used_ = 1;
      for (const Slot& slot : old) {
        if (slot.number != kUnknown) add(slot.key, slot.number);
      }
    }
    std::size_t at = slot_of(key);
    while (slots_[at].number != kUnknown) at = (at + 1) % slots_.size();
    slots_[at] = {std::string(key), number};
  }

  int find(std::string_view key) const noexcept {
    std::size_t at = slot_of(key);
    for (; slots_[at].number != kUnknown; at = (at + 1) % slots_.size()) {
      if (slots_[at].key == key) return slots_[at].number;
    }
    return kUnknown;
  }

 private:
  struct Slot {
    std::string key;
    int number = kUnknown;
  };

  /// Length and two bytes: keys that profilers write differ there, and no byte is read twice.
  std::size_t slot_of(std::string_view key) const noexcept {
    if (key.empty()) return 0;
    const auto first = static_cast<unsigned char>(key.front());
    const auto last = static_cast<unsigned char>(key.back());
    const auto middle = static_cast<unsigned char>(key[key.size() / 2]);
    return (key.size() * 131 + first * 31 + middle * 17 + last * 7) & (slots_.size() - 1);
  }

  std::size_t used_ = 0;
  std::vector<Slot> slots_ = std::vector<Slot>(256);  // a power of two, at most a quarter full
};

/// A `pid` or `tid`: a number, or the number of its text.
struct TrackId {
  std::int64_t value = 0;
  bool is_text = true;  // the empty text: an event without one
  bool operator==(const TrackId&) const = default;
};

class Lanes {
 public:
  explicit Lanes(Columns& columns) : columns_(columns) {}

  /// Events of one lane follow each other, so the last answer is tried first.
  std::uint32_t index_of(const TrackId& process, const TrackId& thread) {
    const Key key{process, thread};
    if (last_ != kNone && key == last_key_) return last_;
    last_key_ = key;
    return last_ = find_or_add(key);
  }

  /// Forgets the lanes from `first` on: events that turned out to be none came with them.
  void forget_from(std::uint32_t first) {
    std::erase_if(known_, [&](const auto& lane) { return lane.second >= first; });
    columns_.lanes.resize(first);
    last_ = kNone;
  }

  /// A metadata event of this lane; texts of unknown kinds are ignored.
  void label(std::uint32_t lane, std::string_view kind, std::string_view text) {
    Lane& labelled = columns_.lanes[lane];
    if (kind == "thread_name") labelled.thread_name = text;
    if (kind == "process_name") labelled.process_name = text;
    if (kind == "process_labels") labelled.process_labels = text;
  }

  /// Gives process names to all lanes of their process. Once, at the end.
  void finish() {
    std::unordered_map<std::string, std::pair<std::string, std::string>> processes;
    for (const Lane& lane : columns_.lanes) {
      auto& [name, labels] = processes[lane.process];
      if (!lane.process_name.empty()) name = lane.process_name;
      if (!lane.process_labels.empty()) labels = lane.process_labels;
    }
    for (Lane& lane : columns_.lanes)
      std::tie(lane.process_name, lane.process_labels) = processes[lane.process];
  }

 private:
  struct Key {
    TrackId process;
    TrackId thread;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      const auto process = static_cast<std::uint64_t>(key.process.value) * 2 + key.process.is_text;
      const auto thread = static_cast<std::uint64_t>(key.thread.value) * 2 + key.thread.is_text;
      const std::uint64_t mixed = (process * 0x9fb21c651e98df25ULL ^ thread) * 0x9fb21c651e98df25ULL;
      return static_cast<std::size_t>(mixed ^ mixed >> 32);
    }
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::uint32_t find_or_add(const Key& key) {
    const auto [at, added] = known_.try_emplace(key, static_cast<std::uint32_t>(columns_.lanes.size()));
    if (added) {
      Lane lane;
      lane.process = text_of(key.process);
      lane.thread = text_of(key.thread);
      if (!key.process.is_text) lane.pid = key.process.value;
      if (!key.thread.is_text) lane.tid = key.thread.value;
      columns_.lanes.push_back(std::move(lane));
    }
    return at->second;
  }
  std::string text_of(const TrackId& id) const {
    if (!id.is_text) return std::to_string(id.value);
    return std::string(columns_.names[static_cast<Names::Id>(id.value)]);
  }

  Columns& columns_;
  std::unordered_map<Key, std::uint32_t, KeyHash> known_;
  Key last_key_;
  std::uint32_t last_ = kNone;
};

/// Parses windows of a `traceEvents` array (simdjson, on demand) and appends what it finds.
///
/// Fields are taken in the order in which they stand, none is looked up; a text is unescaped only if it holds
/// a backslash. A field that cannot be read is missing from its event and counted. An event becomes a row
/// only when all of it has been gone through, so a refused window leaves nothing half done.
class EventParser {
 public:
  EventParser(Columns& columns, ReadNotes& notes, const std::vector<Argument>& arguments,
              std::size_t window_bytes);

  struct Outcome {
    /// All elements were read.
    bool whole = true;
    /// Position in the text of the element at which it stopped.
    std::size_t stopped_at = 0;
    /// That element itself was read; what follows it is in disorder.
    bool element_done = false;
    /// All of the text was read: no `]` in it closes the array.
    bool up_to_end = false;
  };

  /// Reads elements of an array, with commas between them. The byte before `text` and the one behind it are
  /// borrowed, and ByteWindow::kSlack bytes behind it may be read. `offset`: where the text stands in the
  /// file.
  Outcome parse(char* text, std::size_t length, std::uint64_t offset);

  /// `parse` of a text of whole elements only; else false, and no row or remark was made.
  bool parse_all(char* text, std::size_t length, std::uint64_t offset);

  /// Counts an element that could not be read.
  void skip(ReadProblem problem, std::uint64_t offset);

  /// Once, behind the last event.
  void finish() { lanes_.finish(); }

 private:
  /// The fields of the event that is being read.
  struct Event {
    char phase = '\0';
    bool is_empty = true;
    bool has_start = false;
    bool has_duration = false;
    bool time_is_wrong = false;
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    Names::Id name = 0;
    Names::Id category = 0;
    TrackId process;
    TrackId thread;
    bool has_flow_id = false;
    std::int64_t flow_id = 0;
    std::int64_t stream = kAbsent;
    std::int64_t correlation = kAbsent;
    std::int64_t external_id = kAbsent;
    /// `args.name` or `args.labels`, which is what metadata events say.
    Names::Id label = 0;
  };
  /// An argument that goes into its column if the event does.
  struct Pending {
    std::size_t column;
    std::int64_t integer;
    double number;
    Names::Id text;
  };

  void forget_from(Row row, std::uint32_t lane);
  bool read_event(simdjson::ondemand::object& object);
  bool read_arguments(simdjson::ondemand::value& value);
  void read_field(std::string_view key, simdjson::ondemand::value& value);
  void read_argument(std::string_view key, simdjson::ondemand::value& value);
  void read_column(std::size_t column, simdjson::ondemand::value& value);
  void append();
  void append_row();

  std::string_view content_of(simdjson::ondemand::value& value);
  std::string_view json_of(simdjson::ondemand::value& value);
  TrackId track_of(simdjson::ondemand::value& value);
  bool time_of(simdjson::ondemand::value& value, std::int64_t& ns);
  bool integer_of(simdjson::ondemand::value& value, std::int64_t& integer);
  bool number_of(simdjson::ondemand::value& value, double& number);
  void count(ReadProblem problem) { problems_.push_back(problem); }

  Columns& columns_;
  ReadNotes& notes_;
  Lanes lanes_;
  ArgumentTable table_;
  simdjson::ondemand::parser parser_;
  Event event_;
  std::vector<Pending> pending_;
  /// The event's own, counted with it, or an event that is read again would count twice.
  std::vector<ReadProblem> problems_;
  std::uint64_t event_offset_ = 0;
  std::uint32_t position_ = 0;
};

}  // namespace headrace::trace
