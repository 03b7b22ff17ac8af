// Appends events that were no text to columns: what EventParser does for JSON.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "headrace/trace/columns.h"
#include "headrace/trace/read_notes.h"
#include "trace/fixed_point.h"

namespace headrace::trace {

/// An event of phase X unless said otherwise.
struct EventRow {
  Names::Id name = 0;
  Names::Id category = 0;
  char phase = 'X';
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t lane = 0;
  std::int64_t stream = kAbsent;
  std::int64_t correlation = kAbsent;
};

class EventRows {
 public:
  EventRows(Columns& columns, ReadNotes& notes, const std::vector<Argument>& arguments)
      : columns_(columns), notes_(notes) {
    for (const Argument& argument : arguments) columns_.arguments.push_back({argument, {}, {}, {}, {}});
    for (ArgumentColumn& column : columns_.arguments) arguments_.try_emplace(column.argument.name, &column);
  }

  /// The lane of a thread; made at its first use, and named then.
  std::uint32_t lane(std::int64_t pid, std::int64_t tid, std::string_view process, std::string_view label,
                     const std::string& thread) {
    const auto [at, is_new] =
        lanes_.try_emplace({pid, tid}, static_cast<std::uint32_t>(columns_.lanes.size()));
    if (is_new) {
      columns_.lanes.push_back({std::to_string(pid), std::to_string(tid), pid, tid, std::string(process),
                                std::string(label), thread});
    }
    return at->second;
  }

  /// False, and counted in the notes, if its times are impossible.
  bool add(const EventRow& event) {
    if (event.start_ns < 0 || event.start_ns > kFurthestNs || event.end_ns > kFurthestNs) {
      notes_.count(ReadProblem::time_out_of_range, 0);
      return false;
    }
    if (event.end_ns < event.start_ns) {
      notes_.count(ReadProblem::negative_duration, 0);
      return false;
    }
    if (event.end_ns - event.start_ns > kLongestNs ||
        columns_.size() == std::numeric_limits<Row>::max() - 1) {
      notes_.count(ReadProblem::time_out_of_range, 0);
      return false;
    }
    columns_.position.push_back(static_cast<std::uint32_t>(columns_.size()));
    columns_.name.push_back(event.name);
    columns_.category.push_back(event.category);
    columns_.phase.push_back(event.phase);
    columns_.start_ns.push_back(event.start_ns);
    columns_.duration_ns.push_back(event.end_ns - event.start_ns);
    columns_.lane.push_back(event.lane);
    columns_.stream.push_back(event.stream);
    columns_.correlation.push_back(event.correlation);
    columns_.external_id.push_back(kAbsent);
    return true;
  }

  /// Adds to the last event. Nothing if the argument was not requested, or is of another kind.
  void integer(std::string_view argument, std::int64_t value) {
    if (ArgumentColumn* const into = column(argument, ArgumentKind::integer)) into->integers.push_back(value);
  }
  void text(std::string_view argument, Names::Id value) {
    if (ArgumentColumn* const into = column(argument, ArgumentKind::text)) into->texts.push_back(value);
  }
  void flow_id(std::int64_t id) {
    columns_.flow_id.rows.push_back(static_cast<Row>(columns_.size() - 1));
    columns_.flow_id.integers.push_back(id);
  }

 private:
  ArgumentColumn* column(std::string_view argument, ArgumentKind kind) {
    const auto at = arguments_.find(argument);
    if (at == arguments_.end() || at->second->argument.kind != kind || columns_.size() == 0) return nullptr;
    const auto row = static_cast<Row>(columns_.size() - 1);
    if (!at->second->rows.empty() && at->second->rows.back() == row) return nullptr;
    at->second->rows.push_back(row);
    return at->second;
  }

  Columns& columns_;
  ReadNotes& notes_;
  std::map<std::string, ArgumentColumn*, std::less<>> arguments_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> lanes_;
};

}  // namespace headrace::trace
