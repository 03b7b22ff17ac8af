// Moves along a `traceEvents` array and hands its events to the parser, window by window.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/trace/read_notes.h"
#include "trace/byte_window.h"
#include "trace/event_parser.h"

namespace headrace::trace {

/// The usual way: cut the window behind the last complete event, parse all before the cut at once. When the
/// parser refuses, or a window holds no end of an event, the events in the window are found and parsed one by
/// one, so that one damaged event costs itself and no other. An event longer than the window makes the window
/// grow.
class EventArray {
 public:
  EventArray(ByteWindow& window, EventParser& parser, ReadNotes& notes, std::size_t longest_event)
      : window_(window), parser_(parser), notes_(notes), longest_event_(longest_event) {}

  /// From behind the `[` to behind the `]`. False when the stream ends before that; `notes` say where.
  bool read();

 private:
  enum class Progress { some, none, closed };

  Progress read_window();
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
