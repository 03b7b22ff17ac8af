// Durations of calls, and calls by their names: the longest first, the tail folded into "others".
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"
#include "headrace/trace/columns.h"

namespace headrace::analysis::device {

/// Only the sum of calls.
struct CallSum {
  std::int64_t count = 0;
  std::int64_t total_ns = 0;
};

/// Running figures of durations; two of them can be put together without the durations.
///
/// Squares are kept as deviations from the running mean (Welford, and Chan et al. for the sum of two), so
/// that a million calls of nearly the same length have the right standard deviation.
class CallStatistics {
 public:
  void add(std::int64_t duration_ns) noexcept {
    ++calls_;
    total_ns_ += duration_ns;
    shortest_ns_ = std::min(shortest_ns_, duration_ns);
    longest_ns_ = std::max(longest_ns_, duration_ns);
    const double off = static_cast<double>(duration_ns) - mean_ns_;
    mean_ns_ += off / static_cast<double>(calls_);
    squares_ += off * (static_cast<double>(duration_ns) - mean_ns_);
  }

  void add(const CallStatistics& other) noexcept {
    if (other.calls_ == 0) return;
    const auto mine = static_cast<double>(calls_);
    const auto others = static_cast<double>(other.calls_);
    const double apart = other.mean_ns_ - mean_ns_;
    calls_ += other.calls_;
    total_ns_ += other.total_ns_;
    shortest_ns_ = std::min(shortest_ns_, other.shortest_ns_);
    longest_ns_ = std::max(longest_ns_, other.longest_ns_);
    mean_ns_ += apart * others / (mine + others);
    squares_ += other.squares_ + apart * apart * mine * others / (mine + others);
  }

  std::int64_t calls() const noexcept { return calls_; }
  std::int64_t total_ns() const noexcept { return total_ns_; }
  std::int64_t shortest_ns() const noexcept { return shortest_ns_; }
  std::int64_t longest_ns() const noexcept { return longest_ns_; }
  double mean_s() const noexcept {
    return calls_ == 0 ? kNoFigure : static_cast<double>(total_ns_) / static_cast<double>(calls_) / 1e9;
  }
  double std_s() const noexcept {
    return calls_ < 2 ? kNoFigure : std::sqrt(squares_ / static_cast<double>(calls_ - 1)) / 1e9;
  }
  /// Variance of all, square microseconds.
  double variance_us2() const noexcept { return squares_ / static_cast<double>(calls_) / 1e6; }

 private:
  std::int64_t calls_ = 0;
  std::int64_t total_ns_ = 0;
  std::int64_t shortest_ns_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t longest_ns_ = std::numeric_limits<std::int64_t>::min();
  double mean_ns_ = 0;
  double squares_ = 0;
};

/// The values of `CallColumns`; `whole_ns`: what the total is a part of.
inline std::tuple<std::int64_t, std::array<double, 6>> call_figures(const CallStatistics& calls,
                                                                    std::int64_t whole_ns) noexcept {
  return {calls.calls(),
          {seconds(calls.total_ns()), percent(calls.total_ns(), whole_ns), calls.mean_s(), calls.std_s(),
           seconds(calls.shortest_ns()), seconds(calls.longest_ns())}};
}

struct NamedCalls {
  std::string_view name;
  KernelKind kind = KernelKind::other;
  CallStatistics calls;
};

/// Groups calls by name and kind: a name may be that of a copy and of a kernel.
class CallsByName {
 public:
  explicit CallsByName(const trace::Names& names);

  void add(trace::Names::Id name, KernelKind kind, std::int64_t duration_ns);
  /// By kind, then the longest in total first, then by name. Leaves this empty.
  std::vector<NamedCalls> take();

 private:
  const trace::Names& names_;
  std::vector<std::array<std::int32_t, kKernelKinds>> place_;  ///< by name; -1: none yet
  std::vector<NamedCalls> calls_;
};

/// Names that are shown one by one.
struct ShownNames {
  std::size_t most = 0;                      ///< those that took longest; 0: no limit
  double time_share = 1;                     ///< as many as it takes to cover this share of the time
  std::span<const std::string> always = {};  ///< parts of names that are shown anyway
};

inline constexpr std::string_view kOthers = "others";

/// The shown names of each kind, and behind them the others as one. `calls`: as `take` gives them.
std::vector<NamedCalls> folded(std::span<const NamedCalls> calls, const ShownNames& shown);

std::int64_t total_ns(std::span<const NamedCalls> calls) noexcept;

}  // namespace headrace::analysis::device
