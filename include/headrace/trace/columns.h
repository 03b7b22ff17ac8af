// The events of one trace as columns (structure of arrays): what every analysis reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/trace/names.h"
#include "headrace/trace/values.h"

namespace headrace::trace {

/// Value of a number column where the event has none.
inline constexpr std::int64_t kAbsent = -1;

/// The row of an event in `Columns`.
using Row = std::uint32_t;

/// A row of the timeline: one thread of a process, or one stream of a device.
struct Lane {
  /// `pid` and `tid` as the file writes them; some are names ("Spans", "stream 7").
  std::string process;
  std::string thread;
  /// Both as numbers, kAbsent where they are names.
  std::int64_t pid = kAbsent;
  std::int64_t tid = kAbsent;
  /// Names in the file's metadata events, empty if it has none.
  std::string process_name;
  std::string process_labels;  ///< Kineto: "CPU", "GPU 0"
  std::string thread_name;
};

enum class ArgumentKind : std::uint8_t {
  integer,  ///< int64; a quoted decimal number counts
  number,   ///< double
  text,     ///< an interned text: a string's content, anything else as it is in the file
};

/// An argument (a key in an event's `args`) that is to become a column.
struct Argument {
  std::string name;
  ArgumentKind kind = ArgumentKind::text;
};

/// One argument of the events that have it: `rows` ascending, and the values in the array of its kind.
struct ArgumentColumn {
  Argument argument;
  Values<Row> rows;
  CompactIntegers integers;
  Values<double> numbers;
  Values<Names::Id> texts;

  /// Index of `row` in `rows`, nothing if that event does not have the argument. Binary search.
  std::optional<std::size_t> find(Row row) const noexcept;
};

/// Nothing if `column` is null, has no integers, or the event does not have the argument.
std::optional<std::int64_t> integer_at(const ArgumentColumn* column, Row row) noexcept;

/// All events that have a time stamp, in the order of the file. Arrays of one length, one entry per event:
///
///     name  category  phase  start_ns  duration_ns  lane  stream  correlation  external_id  position
///
/// Times are integer nanoseconds on the clock of the file (`ts` is in microseconds with up to three
/// decimals).
struct Columns {
  Names names;

  Values<Names::Id> name;
  Values<Names::Id> category;
  /// The letter of the Chrome format: X complete, i instant, C counter, s t f flow, B E begin and end.
  Values<char> phase;
  Values<std::int64_t> start_ns;
  /// 0 for phases that have no duration.
  Values<std::int64_t> duration_ns;
  /// Index into `lanes`.
  Compact<std::uint16_t, std::uint32_t> lane;
  /// The arguments that tie the two sides of a launch together, kAbsent if there is none. `stream` is
  /// kAbsent too where the file does not write it as a decimal number ("0x0").
  CompactIntegers stream;
  CompactIntegers correlation;
  CompactIntegers external_id;
  /// The event's index in the file's array; events that were skipped and metadata events count.
  Values<std::uint32_t> position;

  std::vector<Lane> lanes;
  /// `id` of flow events and whatever else has one.
  ArgumentColumn flow_id{{"id", ArgumentKind::integer}, {}, {}, {}, {}};
  /// One per argument that was asked for, in that order, also where no event had it.
  std::vector<ArgumentColumn> arguments;

  std::size_t size() const noexcept { return start_ns.size(); }

  std::string_view name_of(Row row) const noexcept { return names[name[row]]; }
  std::string_view category_of(Row row) const noexcept { return names[category[row]]; }
  std::int64_t end_ns(Row row) const noexcept { return start_ns[row] + duration_ns[row]; }

  /// The column of an argument, nullptr when it was not asked for.
  const ArgumentColumn* argument(std::string_view name) const noexcept;
  ArgumentColumn* argument(std::string_view name) noexcept {
    return const_cast<ArgumentColumn*>(std::as_const(*this).argument(name));
  }

  /// Bytes of memory in use.
  std::size_t bytes() const noexcept;
};

/// "" if `column` is null, has no texts, or the event does not have the argument.
std::string_view text_at(const Columns& columns, const ArgumentColumn* column, Row row) noexcept;

}  // namespace headrace::trace
