// Appends events that were no text to columns: what EventParser does for JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "headrace/trace/columns.h"
#include "headrace/trace/read_notes.h"

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
  EventRows(Columns& columns, ReadNotes& notes, const std::vector<Argument>& arguments);

  /// The lane of a thread; made at its first use, and named then.
  std::uint32_t lane(std::int64_t pid, std::int64_t tid, std::string_view process, std::string_view label,
                     const std::string& thread);

  /// False, and counted in the notes, if its times are impossible.
  bool add(const EventRow& event);

  /// Of the event that was added last. Nothing if the argument was not asked for, or is of another kind.
  void integer(std::string_view argument, std::int64_t value);
  void text(std::string_view argument, Names::Id value);
  void flow_id(std::int64_t id);

 private:
  ArgumentColumn* column(std::string_view argument, ArgumentKind kind);

  Columns& columns_;
  ReadNotes& notes_;
  std::map<std::string, ArgumentColumn*, std::less<>> arguments_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> lanes_;
};

}  // namespace headrace::trace
