// Text of events to rows of columns.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/trace/columns.h"
#include "headrace/trace/read_notes.h"
#include "trace/argument_table.h"
#include "trace/lanes.h"

namespace headrace::trace {

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
    /// Where the element begins at which it stopped, in the text.
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

  /// The same where the text is nothing but whole elements; else false, and no row or remark was made.
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
  /// Of the event; counted with it, or an event that has to be read again would count twice.
  std::vector<ReadProblem> problems_;
  std::uint64_t event_offset_ = 0;
  std::uint32_t position_ = 0;
};

}  // namespace headrace::trace
