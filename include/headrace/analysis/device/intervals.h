// Sets of moments as sorted lists of half-open intervals.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headrace::analysis::device {

/// [begin_ns, end_ns)
struct Interval {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  friend bool operator==(const Interval&, const Interval&) = default;
};

/// Ascending, disjoint, none empty, none touching the next. What the functions below take and give.
using Intervals = std::vector<Interval>;

/// Adds an interval that begins no earlier than any that was added before; empty ones are left out.
void append(Intervals& intervals, Interval interval);

/// Any intervals, in any order.
Intervals merged(std::vector<Interval> intervals);

Intervals united(std::span<const Interval> a, std::span<const Interval> b);
Intervals intersected(std::span<const Interval> a, std::span<const Interval> b);
/// The part of `a` that is in no interval of `b`.
Intervals subtracted(std::span<const Interval> a, std::span<const Interval> b);

std::int64_t total_ns(std::span<const Interval> intervals) noexcept;

/// How much of any stretch of time intervals cover. Refers to them.
class Cover {
 public:
  explicit Cover(const Intervals& intervals);
  std::int64_t within(Interval time) const noexcept { return until(time.end_ns) - until(time.begin_ns); }

 private:
  std::int64_t until(std::int64_t ns) const noexcept;

  const Intervals* intervals_;
  std::vector<std::int64_t> before_ns_;  ///< the sum of all before the i-th
};

}  // namespace headrace::analysis::device
