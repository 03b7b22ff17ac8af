// Lays the clocks of two ranks over each other by the collectives in which they met.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace headrace::timeline {

/// A collective as the device of one rank saw it. Its members end together, whenever each of them began.
struct CollectiveEnd {
  std::uint64_t name = 0;  ///< equal for equal names
  std::int64_t end_ns = 0;
};

/// Shift that turns the other rank's times into the first one's.
struct RankAlignment {
  std::int64_t shift_ns = 0;
  std::optional<std::int64_t> error_ns;  ///< what may remain wrong; nothing: not known, and the shift is 0
  std::size_t matched = 0;               ///< collectives

  /// "12.3 ms were added by 412 collectives; 0.02 ms may remain".
  std::string sentence() const;
};

/// Both in the order of their ends. The k-th collective of one rank is the (k + d)-th of the other, with a d of
/// at most 256 for which their names agree; of those that fit equally well (all steps look alike) it is the one
/// with the smallest shift, if `clocks_agree` (the traces say what their zeros are in Unix time). The shift is
/// the median of the differences of their ends; nine of ten deviate from it by the error at most. Fewer than 8
/// collectives, names that differ, and an error beyond 5 ms (the ranks meet in different groups) give no shift.
RankAlignment align_ranks(std::span<const CollectiveEnd> first, std::span<const CollectiveEnd> other,
                          bool clocks_agree);

}  // namespace headrace::timeline
