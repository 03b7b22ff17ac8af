// Where events begin and end in an array of JSON objects, found without parsing them.
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

}  // namespace headrace::trace
