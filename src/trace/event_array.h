// Moves along a `traceEvents` array and hands its events to the parser, window by window.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/trace/read_notes.h"
#include "trace/byte_window.h"
#include "trace/event_parser.h"

namespace headrace::trace {

/// Three ways through a window, each more careful than the one before it:
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
  bool read();

 private:
  enum class Progress { some, none, closed };

  Progress read_window();
  bool read_up_to_last_event(std::size_t first);
  Progress read_up_to_last_bracket(std::size_t first);
  Progress read_one_by_one(std::size_t from);
  void read_damaged(std::size_t begin, std::size_t end);
  bool make_room();
  bool skip_long_event();
  bool cut_off();

  ByteWindow& window_;
  EventParser& parser_;
  ReadNotes& notes_;
  std::size_t longest_event_;
};

}  // namespace headrace::trace
