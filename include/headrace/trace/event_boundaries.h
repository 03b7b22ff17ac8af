// Finds the beginnings and ends of events in an array of JSON objects without parsing them: fast, and with care
// for damage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace headrace::trace {

/// Finds the ends of the objects in the text of a JSON array, from behind its `[`, fed piece by piece. Braces
/// and brackets inside strings are none.
///
/// 64 bytes at a time: masks of quotes and backslashes give the bytes that lie in strings (a prefix xor of
/// the quotes that are not escaped), masks of what opens and closes give the depth. Only blocks in which an
/// object may end are looked at bit by bit. It checks nothing: text that is no JSON gives boundaries that
/// make no sense, which the parser behind it notices.
class EventBoundaries {
 public:
  static constexpr std::size_t npos = std::numeric_limits<std::size_t>::max();

  struct Found {
    /// Behind the last complete object, npos if there is none.
    std::size_t after_last = npos;
    /// Objects that end in this piece.
    std::size_t events = 0;
    /// At the `]` that closes the array, npos while it is open. Nothing behind it was looked at.
    std::size_t array_end = npos;
  };

  /// Goes through the next piece, until its end, the array's end, or `most_events` objects (the state is then
  /// that of the byte behind the last of them).
  Found scan(std::string_view piece, std::size_t most_events = npos) noexcept;

  /// Forgets everything: the next piece begins between two objects.
  void reset() noexcept { *this = EventBoundaries(); }

 private:
  struct Block;

  /// All bits set inside a string, as the next block begins.
  std::uint64_t in_string_ = 0;
  /// 1 when the next byte is escaped by a backslash before it.
  std::uint64_t escaped_ = 0;
  std::uint64_t depth_ = 0;
};

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
/// If JSON does not allow it there (in a string, as a member of an object, behind a bracket that closed
/// another kind), the event before it is damaged and ends there. One pass, whatever the text is.
EventSpan find_event(std::string_view text, std::size_t from);

/// Makes what is commonly wrong in texts harmless, in place and without moving a byte: control characters
/// become blanks and, where the whole is not UTF-8, all bytes beyond ASCII become question marks. False when
/// nothing was found.
bool repair_texts(char* text, std::size_t length);

}  // namespace headrace::trace
