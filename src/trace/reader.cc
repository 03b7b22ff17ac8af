#include "headrace/trace/reader.h"

#include <simdjson.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "headrace/profile/errors.h"
#include "headrace/trace/byte_source.h"
#include "headrace/trace/event_boundaries.h"
#include "trace/ascend/trace_view.h"
#include "trace/byte_window.h"
#include "trace/event_parser.h"
#include "trace/json_walk.h"

namespace headrace::trace {
namespace {

constexpr const char* kExpected = "an object with \"traceEvents\", or an array of events";
/// The first byte of every pickle that is written today.
constexpr int kPickle = 0x80;

/// Moves along a `traceEvents` array, window by window. Three ways through a window, each more careful than
/// the one before it:
///
/// - Cut it where its last event seems to begin, and parse all before the cut at once. What counts is that
/// the
///   parser finds whole events up to the very cut; else nothing of it holds.
/// - Cut it behind the last complete event by counting brackets through all of it (EventBoundaries). So too
///   for the last window of a file: what stands behind the events must not be taken for one.
/// - When the parser refuses that as well, or a window holds no end of an event, find and parse the events
/// one
///   by one, so that one damaged event costs itself and no other.
///
/// An event longer than the window makes the window grow.
class EventArray {
 public:
  EventArray(ByteWindow& window, EventParser& parser, ReadNotes& notes, std::size_t longest_event)
      : window_(window), parser_(parser), notes_(notes), longest_event_(longest_event) {}

  /// From behind the `[` to behind the `]`. False when the stream ends before that; `notes` say where.
  bool read() {
    for (;;) {
      window_.fill();
      switch (read_window()) {
        case Progress::closed:
          return true;
        case Progress::some:
          break;
        case Progress::none:
          if (window_.ended()) return cut_off();
          if (!make_room()) return false;
          break;
      }
    }
  }

 private:
  enum class Progress { some, none, closed };

  Progress read_window() {
    const std::string_view text = window_.text();
    const std::size_t first = std::min(text.find_first_not_of(" \t\r\n,"), text.size());
    if (!window_.ended() && read_up_to_last_event(first)) return Progress::some;
    return read_up_to_last_bracket(first);
  }

  /// False when nothing was read: the text is out of order, or the array ends in this window.
  bool read_up_to_last_event(std::size_t first) {
    const std::size_t length = last_event_end(window_.text().substr(first));
    if (length == std::string_view::npos) return false;
    if (!parser_.parse_all(window_.data() + first, length, window_.offset() + first)) return false;
    window_.drop(first + length);
    return true;
  }

  Progress read_up_to_last_bracket(std::size_t first) {
    EventBoundaries boundaries;
    const EventBoundaries::Found found = boundaries.scan(window_.text().substr(first));
    const bool closes = found.array_end != EventBoundaries::npos;
    const std::size_t length = closes ? found.array_end : found.after_last;
    if (length == EventBoundaries::npos) return read_one_by_one(0);

    window_.drop(first);
    const EventParser::Outcome outcome = parser_.parse(window_.data(), length, window_.offset());
    if (!outcome.whole) {
      std::size_t from = outcome.stopped_at;
      if (outcome.element_done) from = find_event(window_.text().substr(0, length), from).end;
      return read_one_by_one(from);
    }
    window_.drop(length + (closes ? 1 : 0));
    return closes ? Progress::closed : Progress::some;
  }

  Progress read_one_by_one(std::size_t from) {
    const std::string_view text = window_.text();
    for (;;) {
      const EventSpan span = find_event(text, from);
      if (span.kind == EventSpan::Kind::array_end) {
        window_.drop(span.begin + 1);
        return Progress::closed;
      }
      if (span.kind == EventSpan::Kind::incomplete) {
        window_.drop(span.begin);
        return span.begin > 0 ? Progress::some : Progress::none;
      }
      read_damaged(span.begin, span.end);
      from = span.end;
    }
  }

  /// One element that may be anything.
  void read_damaged(std::size_t begin, std::size_t end) {
    char* const text = window_.data() + begin;
    const std::uint64_t offset = window_.offset() + begin;
    // The comma between a damaged event and the next belongs to neither.
    std::size_t length = end - begin;
    while (length > 1 && (text[length - 1] == ',' || static_cast<unsigned char>(text[length - 1]) <= ' '))
      --length;
    if (parser_.parse(text, length, offset).whole) return;
    if (repair_texts(text, length) && parser_.parse(text, length, offset).whole) {
      notes_.count(ReadProblem::repaired, offset);
      return;
    }
    parser_.skip(ReadProblem::unreadable, offset);
  }

  /// False when the stream has ended.
  bool make_room() {
    if (window_.capacity() < longest_event_) {
      window_.grow(longest_event_);
      return true;
    }
    return skip_long_event();
  }

  bool skip_long_event() {
    parser_.skip(ReadProblem::too_long, window_.offset());
    EventBoundaries boundaries;
    for (;;) {
      const std::string_view text = window_.text();
      const EventBoundaries::Found found = boundaries.scan(text, 1);
      if (found.after_last != EventBoundaries::npos) {
        window_.drop(found.after_last);
        return true;
      }
      if (found.array_end != EventBoundaries::npos) {
        window_.drop(found.array_end);
        return true;
      }
      if (window_.ended()) return cut_off();
      window_.drop(text.size());
      window_.fill();
    }
  }

  bool cut_off() {
    notes_.cut = true;
    notes_.cut_where = window_.text().empty() ? "between two events" : "inside an event";
    window_.drop(window_.text().size());
    notes_.cut_offset = window_.offset();
    return false;
  }

  ByteWindow& window_;
  EventParser& parser_;
  ReadNotes& notes_;
  std::size_t longest_event_;
};

/// The top level.
class Document {
 public:
  Document(ByteWindow& window, EventArray& events, ReadNotes& notes, const std::string& name)
      : window_(window), events_(events), notes_(notes), name_(name) {}

  void read() {
    walk_.begin();
    const int first = walk_.peek();
    if (first == '[') {
      window_.drop(1);
      if (events_.read()) look_behind();
      return;
    }
    if (first == JsonWalk::kEnd)
      throw FormatError(name_, window_.offset(), "a trace, but there is nothing in it");
    if (first == kPickle)
      throw FormatError(name_,
                        "a pickle, no trace; hr.MemorySnapshot.load reads memory snapshots of PyTorch");
    if (first != '{') throw FormatError(name_, window_.offset(), kExpected);
    window_.drop(1);
    read_object();
    if (!found_events_) throw FormatError(name_, window_.offset(), kExpected);
    if (!notes_.cut) look_behind();
  }

  std::vector<std::pair<std::string, std::string>> metadata;

 private:
  void look_behind() {
    if (walk_.peek() == JsonWalk::kEnd || window_.text().front() == '\0') return;
    notes_.remarks.push_back("something else stands behind the trace, from byte " +
                             std::to_string(window_.offset()) + " on: it is not read");
  }

  void read_object() {
    std::string key;
    std::string value;
    for (;;) {
      int next = walk_.peek();
      if (next == JsonWalk::kEnd) return cut_off("inside the top-level object");
      if (next == '}') return window_.drop(1);
      if (next != '"') {  // a comma; anything else is passed over too, a later key may be in order
        window_.drop(1);
        continue;
      }
      if (!walk_.take_value(&key)) return cut_off("inside a key");
      next = walk_.peek();
      if (next == JsonWalk::kEnd) return cut_off("behind a key");
      if (next != ':') continue;
      window_.drop(1);
      next = walk_.peek();
      if (key == "\"traceEvents\"" && next == '[') {
        found_events_ = true;
        window_.drop(1);
        if (!events_.read()) return;
        continue;
      }
      if (next == ',' || next == '}' || next == ']') continue;  // a value is missing
      if (next == JsonWalk::kEnd || !walk_.take_value(&value)) return cut_off("inside the value of " + key);
      if (!value.empty() && key.size() >= 2) metadata.emplace_back(key.substr(1, key.size() - 2), value);
    }
  }

  void cut_off(std::string_view where) {
    notes_.cut = true;
    notes_.cut_where = where;
    notes_.cut_offset = window_.offset();
  }

  ByteWindow& window_;
  JsonWalk walk_{window_};
  EventArray& events_;
  ReadNotes& notes_;
  const std::string& name_;
  bool found_events_ = false;
};

/// Gives each event of phase B the time to its end and phase X, as if it had been written as one; its E
/// stays. The last that began in a lane ends first. Returns how many have no end or no beginning; those are
/// left as they are.
std::size_t pair_begin_end(Columns& columns) {
  std::vector<Row> marks;
  for (Row row = 0; row < columns.size(); ++row) {
    if (columns.phase[row] == 'B' || columns.phase[row] == 'E') marks.push_back(row);
  }
  std::stable_sort(marks.begin(), marks.end(),
                   [&](Row a, Row b) { return columns.start_ns[a] < columns.start_ns[b]; });
  std::vector<std::vector<Row>> open(columns.lanes.size());
  std::size_t unpaired = 0;
  for (const Row row : marks) {
    std::vector<Row>& begun = open[columns.lane[row]];
    if (columns.phase[row] == 'B') {
      begun.push_back(row);
    } else if (begun.empty()) {
      ++unpaired;
    } else {
      columns.phase[begun.back()] = 'X';
      columns.duration_ns[begun.back()] = columns.start_ns[row] - columns.start_ns[begun.back()];
      begun.pop_back();
    }
  }
  for (const std::vector<Row>& begun : open) unpaired += begun.size();
  return unpaired;
}

/// The integer at `json[key]`, or `json` itself where `key` is empty.
std::optional<std::int64_t> integer_in(const std::string& json, std::string_view key) {
  simdjson::dom::parser parser;
  simdjson::dom::element element;
  if (parser.parse(json).get(element)) return std::nullopt;
  if (!key.empty() && element.at_key(key).get(element)) return std::nullopt;
  std::int64_t value = 0;
  if (element.get(value)) return std::nullopt;
  return value;
}

/// A JSON array whose entries are something else.
void refuse_other_lists(const TraceFile& file) {
  const ReadNotes& notes = file.notes;
  const std::uint64_t others =
      notes.of(ReadProblem::not_an_object).count + notes.of(ReadProblem::no_phase).count;
  if (file.columns.size() > 0 || others == 0 || others < notes.skipped()) return;
  throw FormatError(file.path, "no trace: none of its " + std::to_string(others) +
                                   " entries is an event (a memory timeline, or another tool's list)");
}

void read_metadata(TraceFile& file) {
  for (const auto& [key, value] : file.metadata) {
    if (key == "distributedInfo") file.rank = integer_in(value, "rank");
    if (key == "baseTimeNanoseconds") file.base_time_ns = integer_in(value, "");
  }
}

}  // namespace

std::vector<Argument> analysed_arguments() {
  using enum ArgumentKind;
  return {
      {"device", integer},
      {"bytes", integer},
      {"Bytes", integer},
      {"Device Type", integer},
      {"Device Id", integer},
      {"Total Allocated", integer},
      {"Total Reserved", integer},
      {"memory bandwidth (GB/s)", number},
      {"blocks per SM", number},
      {"est. achieved occupancy %", number},
      {"wait_on_stream", integer},
      {"wait_on_cuda_event_record_corr_id", integer},
      {"Sequence number", integer},
      {"Fwd thread id", integer},
      {"Python id", integer},
      {"Python parent id", integer},
      {"Input Dims", text},
      {"Input type", text},
      {"Concrete Inputs", text},
      {"Collective name", text},
      {"dtype", text},
      {"In msg nelems", integer},
      {"Out msg nelems", integer},
      {"Group size", integer},
      {"Process Group Name", text},
      {"Process Group Ranks", text},
      {"Global rank start", integer},
      {"Global rank stride", integer},
      {"Src Rank", integer},
      {"Dst Rank", integer},
      {"correlation_id", integer},
      {"Task Type", text},
      {"memcpy direction", text},
      {"size(Byte)", integer},
      {"transport type", text},
      {"link type", text},
      {"rank", integer},
  };
}

TraceFile read_source(ByteSource& source, const std::string& name, const ReadOptions& options) {
  TraceFile file;
  file.path = name;
  GzipStream inflated(source, name);
  ByteWindow window(inflated, options.window_bytes);
  EventParser parser(file.columns, file.notes, options.arguments, window.capacity() + 2);
  EventArray events(window, parser, file.notes, options.longest_event_bytes);
  Document document(window, events, file.notes, name);
  document.read();
  file.metadata = std::move(document.metadata);
  parser.finish();
  if (const std::size_t unpaired = pair_begin_end(file.columns); unpaired > 0)
    file.notes.remarks.push_back(std::to_string(unpaired) + " events have a beginning or an end only (B, E)");
  const auto asynchronous = std::count_if(file.columns.phase.begin(), file.columns.phase.end(),
                                          [](char c) { return c == 'b' || c == 'e'; });
  if (asynchronous > 0)
    file.notes.remarks.push_back(std::to_string(asynchronous) +
                                 " asynchronous events (b, e) are not read as ranges");
  ascend::adopt_trace_view(file.columns);
  file.notes.bytes = window.offset();
  file.notes.damage = inflated.damage();
  read_metadata(file);
  refuse_other_lists(file);
  return file;
}

const char* to_string(ReadProblem problem) noexcept {
  constexpr std::array<const char*, kReadProblems> kTexts = {
      "not an object",
      "not valid JSON",
      "longer than the limit",
      "no phase",
      "no time stamp",
      "no duration",
      "negative duration",
      "time out of range",
      "not a number",
      "number out of range",
      "a text with a bad escape, kept as it stands",
      "control characters or invalid UTF-8 in a text",
  };
  return kTexts[static_cast<std::size_t>(problem)];
}

void ReadNotes::count(ReadProblem problem, std::uint64_t offset) noexcept {
  Count& count = problems[static_cast<std::size_t>(problem)];
  if (count.count++ == 0) count.first_offset = offset;
}

std::uint64_t ReadNotes::skipped() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kReadProblems; ++i)
    sum += is_skipped(static_cast<ReadProblem>(i)) ? problems[i].count : 0;
  return sum;
}

bool ReadNotes::clean() const noexcept { return sentences().empty(); }

std::vector<std::string> ReadNotes::sentences() const {
  std::vector<std::string> sentences;
  if (!damage.empty()) sentences.push_back(damage);
  if (cut) sentences.push_back("the file ends " + cut_where + " at byte " + std::to_string(cut_offset));
  for (std::size_t i = 0; i < kReadProblems; ++i) {
    const Count& count = problems[i];
    if (count.count == 0) continue;
    const auto problem = static_cast<ReadProblem>(i);
    std::string sentence = std::to_string(count.count);
    if (is_skipped(problem)) {
      sentence += count.count == 1 ? " event skipped: " : " events skipped: ";
    } else if (problem == ReadProblem::repaired) {
      sentence += count.count == 1 ? " event repaired: " : " events repaired: ";
    } else {
      sentence += count.count == 1 ? " field: " : " fields: ";
    }
    sentence += to_string(problem);
    sentence += " (first at byte " + std::to_string(count.first_offset) + ")";
    sentences.push_back(std::move(sentence));
  }
  sentences.insert(sentences.end(), remarks.begin(), remarks.end());
  return sentences;
}

}  // namespace headrace::trace
