// Where events begin, without and with care for damage.
#pragma once

#include <cstddef>
#include <string_view>

namespace headrace::trace {

struct EventSpan {
  enum class Kind {
    complete,    ///< `begin`..`end` is one element of the array
    damaged,     ///< `begin`..`end` is no JSON, and another event surely begins at `end`
    incomplete,  ///< it does not end in this text
    array_end,   ///< `begin` is at the `]` that closes the array
  };
  Kind kind = Kind::incomplete;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Behind the event before the last thing in `text` that looks like the beginning of an event
/// (`}, {"name":`); npos where nothing near the end does. In JSON that can stand in no string, but it can
/// stand in an array inside an event, or behind the end of the events: whoever parses up to there notices.
/// A look at the end of a window costs nothing, finding the same through all of its brackets a tenth of all
/// reading.
std::size_t last_event_end(std::string_view text) noexcept;

/// The first element of the array at or behind `from`: the careful way, for text that the parser has refused.
///
/// Quotes and brackets alone would not find back after one quote too many: all that follows would count as
/// inside out. So the search also looks for what only the beginning of an event looks like (`}, {"name":`).
/// Where JSON allows no such thing, in a string, as a member of an object, or behind a bracket that closed
/// another kind, the event before it is damaged and ends there. One pass, whatever the text is.
EventSpan find_event(std::string_view text, std::size_t from);

/// Makes what is commonly wrong in texts harmless, in place and without moving a byte: control characters
/// become blanks and, where the whole is not UTF-8, all bytes beyond ASCII become question marks. False when
/// nothing was found.
bool repair_texts(char* text, std::size_t length);

}  // namespace headrace::trace
