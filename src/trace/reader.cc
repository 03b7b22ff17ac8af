#include "headrace/trace/reader.h"

#include <simdjson.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "headrace/profile/errors.h"
#include "headrace/trace/gzip_stream.h"
#include "trace/ascend/trace_view.h"
#include "trace/byte_window.h"
#include "trace/document.h"
#include "trace/event_parser.h"

namespace headrace::trace {
namespace {

/// Gives each event of phase B the time to its end and phase X, as if it had been written as one; its E stays. The
/// last that began in a lane ends first. Returns how many have no end or no beginning; those are left as they are.
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
  file.metadata = read_document(window, parser, file.notes, name, options.longest_event_bytes);
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

}  // namespace headrace::trace
