// How long something took: log-linear buckets, fixed memory, mergeable by addition.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "headrace/metrics/relaxed.h"

namespace headrace::metrics {

/// Bucket of a value. Values below 8 ns have a bucket each; above, each power of two is cut into 8 buckets,
/// so a bucket's middle is within 1/16 of every value in it. The last bucket holds everything above 2.4
/// hours.
struct LatencyBuckets {
  static constexpr int kSubBits = 3;
  static constexpr int kSub = 1 << kSubBits;
  static constexpr int kMaxExponent = 43;
  static constexpr int kCount = kSub + (kMaxExponent - kSubBits) * kSub;

  static constexpr int index(std::int64_t ns) noexcept {
    if (ns < kSub) return ns < 0 ? 0 : static_cast<int>(ns);
    const int exponent = 63 - std::countl_zero(static_cast<std::uint64_t>(ns));
    if (exponent >= kMaxExponent) return kCount - 1;
    const int sub = static_cast<int>((ns >> (exponent - kSubBits)) & (kSub - 1));
    return kSub + (exponent - kSubBits) * kSub + sub;
  }
  static constexpr double lower_ns(int bucket) noexcept {
    if (bucket < kSub) return bucket;
    const int exponent = (bucket - kSub) / kSub + kSubBits;
    const int sub = (bucket - kSub) % kSub;
    return static_cast<double>(std::int64_t{kSub + sub} << (exponent - kSubBits));
  }
  static constexpr double width_ns(int bucket) noexcept {
    if (bucket < kSub) return 1;
    return static_cast<double>(std::int64_t{1} << ((bucket - kSub) / kSub));
  }
};

/// Single writer. The count is the sum of the buckets, so a writer killed between two stores leaves no
/// contradiction.
struct LatencyHistogram {
  std::array<Relaxed<std::uint64_t>, LatencyBuckets::kCount> buckets;
  Relaxed<std::int64_t> sum_ns;
  Relaxed<std::int64_t> max_ns;

  void add(std::int64_t ns) noexcept {
    if (ns < 0) ns = 0;  // a clock that jumped
    buckets[static_cast<std::size_t>(LatencyBuckets::index(ns))].bump(1);
    sum_ns.bump(ns);
    if (ns > max_ns.load()) max_ns.store(ns);
  }

  /// `add` for several threads or processes at once.
  void add_shared(std::int64_t ns) noexcept {
    if (ns < 0) ns = 0;
    buckets[static_cast<std::size_t>(LatencyBuckets::index(ns))].add(1);
    sum_ns.add(ns);
    if (ns > max_ns.load()) max_ns.store(ns);  // of two that meet here, the longer one may be lost
  }

  void reset() noexcept {
    for (auto& bucket : buckets) bucket.store(0);
    sum_ns.store(0);
    max_ns.store(0);
  }

  /// Adds another histogram (a retired writer's).
  void merge(const LatencyHistogram& other) noexcept {
    for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i].bump(other.buckets[i].load());
    sum_ns.bump(other.sum_ns.load());
    if (other.max_ns.load() > max_ns.load()) max_ns.store(other.max_ns.load());
  }
};

}  // namespace headrace::metrics
