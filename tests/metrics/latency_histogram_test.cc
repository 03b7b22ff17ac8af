#include "headrace/metrics/latency_histogram.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <random>

#include "metrics/zeroed.h"

namespace headrace::metrics {
namespace {

using Buckets = LatencyBuckets;

TEST(LatencyBuckets, CoverTheLineWithoutGapOrOverlap) {
  EXPECT_EQ(Buckets::lower_ns(0), 0);
  for (int i = 0; i + 1 < Buckets::kCount; ++i) {
    ASSERT_EQ(Buckets::lower_ns(i) + Buckets::width_ns(i), Buckets::lower_ns(i + 1)) << i;
  }
}

TEST(LatencyBuckets, PutEveryEdgeWhereItBelongs) {
  for (int i = 0; i < Buckets::kCount; ++i) {
    const auto lower = static_cast<std::int64_t>(Buckets::lower_ns(i));
    const auto last = lower + static_cast<std::int64_t>(Buckets::width_ns(i)) - 1;
    ASSERT_EQ(Buckets::index(lower), i);
    ASSERT_EQ(Buckets::index(last), i);
  }
}

TEST(LatencyBuckets, AreWithinASixteenthAtEveryMagnitude) {
  std::mt19937_64 random(1);
  for (int exponent = Buckets::kSubBits; exponent < Buckets::kMaxExponent; ++exponent) {
    for (int i = 0; i < 500; ++i) {
      const std::int64_t low = std::int64_t{1} << exponent;
      const auto value = low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(low));
      const int bucket = Buckets::index(value);
      const double middle = Buckets::lower_ns(bucket) + Buckets::width_ns(bucket) / 2;
      ASSERT_LE(std::abs(middle - static_cast<double>(value)), static_cast<double>(value) / 16) << value;
    }
  }
}

TEST(LatencyBuckets, HoldWhatIsOutOfRangeAtTheEnds) {
  EXPECT_EQ(Buckets::index(-1), 0);
  EXPECT_EQ(Buckets::index(INT64_MIN), 0);
  EXPECT_EQ(Buckets::index(std::int64_t{1} << Buckets::kMaxExponent), Buckets::kCount - 1);
  EXPECT_EQ(Buckets::index(INT64_MAX), Buckets::kCount - 1);
}

std::uint64_t count_of(const LatencyHistogram& histogram) {
  std::uint64_t count = 0;
  for (const auto& bucket : histogram.buckets) count += bucket.load();
  return count;
}

TEST(LatencyHistogram, CountsSumsAndRemembersTheLargest) {
  Zeroed<LatencyHistogram> histogram;
  for (const std::int64_t ns : {5, 1000, 3, 250'000}) histogram->add(ns);
  EXPECT_EQ(count_of(*histogram), 4U);
  EXPECT_EQ(histogram->sum_ns.load(), 251'008);
  EXPECT_EQ(histogram->max_ns.load(), 250'000);
}

TEST(LatencyHistogram, CountsANegativeTimeAsZero) {
  Zeroed<LatencyHistogram> histogram;
  histogram->add(-1'000'000);
  EXPECT_EQ(histogram->buckets[0].load(), 1U);
  EXPECT_EQ(histogram->sum_ns.load(), 0);
  EXPECT_EQ(histogram->max_ns.load(), 0);
}

TEST(LatencyHistogram, MergesAsIfOneHadSeenAll) {
  Zeroed<LatencyHistogram> left, right, both;
  std::mt19937_64 random(2);
  for (int i = 0; i < 5000; ++i) {
    const auto ns = static_cast<std::int64_t>(random() >> (20 + random() % 40));
    (i % 3 == 0 ? left : right)->add(ns);
    both->add(ns);
  }
  left->merge(*right);
  for (std::size_t i = 0; i < both->buckets.size(); ++i) {
    ASSERT_EQ(left->buckets[i].load(), both->buckets[i].load());
  }
  EXPECT_EQ(left->sum_ns.load(), both->sum_ns.load());
  EXPECT_EQ(left->max_ns.load(), both->max_ns.load());
}

TEST(LatencyHistogram, ForgetsWhenReset) {
  Zeroed<LatencyHistogram> histogram;
  histogram->add(77);
  histogram->reset();
  EXPECT_EQ(count_of(*histogram), 0U);
  EXPECT_EQ(histogram->sum_ns.load(), 0);
  EXPECT_EQ(histogram->max_ns.load(), 0);
}

}  // namespace
}  // namespace headrace::metrics
