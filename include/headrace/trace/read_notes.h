// Notes of a reader on a trace: what it skipped, repaired or could not read, and where.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace headrace::trace {

/// Something that is wrong with an event. Nothing is dropped in silence: each is counted.
enum class ReadProblem : std::uint8_t {
  // The event is skipped.
  not_an_object,
  unreadable,
  too_long,
  no_phase,
  no_time_stamp,
  no_duration,
  negative_duration,
  time_out_of_range,
  // The event stays, one of its fields is missing.
  not_a_number,
  number_out_of_range,
  // The event stays with everything that could be read.
  bad_escape,
  repaired,
};
inline constexpr std::size_t kReadProblems = static_cast<std::size_t>(ReadProblem::repaired) + 1;

/// True when an event with this problem is not in the columns.
constexpr bool is_skipped(ReadProblem problem) noexcept { return problem <= ReadProblem::time_out_of_range; }

/// In plain words: "negative duration".
const char* to_string(ReadProblem problem) noexcept;

/// How reading went.
struct ReadNotes {
  struct Count {
    std::uint64_t count = 0;
    /// Byte in the (inflated) file of the first one.
    std::uint64_t first_offset = 0;
  };

  /// Bytes of JSON that were read, inflated.
  std::uint64_t bytes = 0;
  /// The file ends before its JSON does; all events before the cut are there.
  bool cut = false;
  /// Where, and what stood there: "inside an event".
  std::uint64_t cut_offset = 0;
  std::string cut_where;
  /// Damage to the compressed stream, empty if there was none.
  std::string damage;
  std::array<Count, kReadProblems> problems{};
  /// Anything else, a sentence each: "table TASK has no column streamId".
  std::vector<std::string> remarks;

  void count(ReadProblem problem, std::uint64_t offset) noexcept;
  const Count& of(ReadProblem problem) const noexcept { return problems[static_cast<std::size_t>(problem)]; }
  std::uint64_t skipped() const noexcept;
  bool clean() const noexcept;

  /// One sentence per remark: "12 events skipped: negative duration (first at byte 4711)".
  std::vector<std::string> sentences() const;
};

}  // namespace headrace::trace
