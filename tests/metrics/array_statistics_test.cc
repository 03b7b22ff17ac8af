#include "headrace/metrics/array_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace headrace::metrics {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(ArrayStatistics, AreThoseOfASlowLoop) {
  std::vector<float> numbers(3 * 5003);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(std::sin(static_cast<double>(i)) * 100);
  double sum = 0;
  double squares = 0;
  for (float x : numbers) {
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  const auto count = static_cast<double>(numbers.size());
  const ArrayStatistics found = array_statistics(numbers.data(), Element::f32, 3, 1, 5003);
  EXPECT_EQ(found.all.finite, numbers.size());
  EXPECT_EQ(found.all.nonfinite, 0U);
  EXPECT_NEAR(found.all.mean(), sum / count, 1e-4);
  EXPECT_NEAR(found.all.deviation(), std::sqrt(squares / count - sum * sum / count / count), 1e-3);
  EXPECT_EQ(found.all.min, *std::min_element(numbers.begin(), numbers.end()));
  EXPECT_EQ(found.all.max, *std::max_element(numbers.begin(), numbers.end()));
  EXPECT_EQ(found.peaks.size(), 3U);
}

TEST(ArrayStatistics, WhatIsNotFiniteIsCountedAndLeftOut) {
  for (std::size_t at : {0U, 1U, 2047U, 2048U, 4099U}) {
    for (float odd : {kNan, kInfinity, -kInfinity}) {
      std::vector<float> numbers(2 * 4100, 2.0F);
      numbers[4100 + at] = odd;
      const ArrayStatistics found = array_statistics(numbers.data(), Element::f32, 2, 1, 4100);
      EXPECT_EQ(found.all.nonfinite, 1U);
      EXPECT_EQ(found.all.min, 2);
      EXPECT_EQ(found.all.max, 2);
      EXPECT_EQ(found.nonfinite_rows, std::vector<std::uint32_t>{1});
      EXPECT_EQ(found.constant_rows, std::vector<std::uint32_t>{0});
    }
  }
}

TEST(ArrayStatistics, SquaresThatAFloatCannotHoldAreExact) {
  std::vector<float> numbers(4096, 1e20F);
  const ArrayStatistics found = array_statistics(numbers.data(), Element::f32, 1, 1, numbers.size());
  EXPECT_EQ(found.all.nonfinite, 0U);
  EXPECT_NEAR(found.all.mean() / 1e20, 1, 1e-6);
}

TEST(ArrayStatistics, AllTypes) {
  const std::vector<double> doubles{-1, 0.5, 3};
  EXPECT_EQ(array_statistics(doubles.data(), Element::f64, 1, 1, 3).all.max, 3);
  const std::vector<std::int64_t> longs{-(1LL << 53), 7};
  EXPECT_EQ(array_statistics(longs.data(), Element::i64, 1, 1, 2).all.min, -0x1p53);
  const std::vector<std::uint8_t> bytes{0, 255};
  EXPECT_EQ(array_statistics(bytes.data(), Element::u8, 1, 1, 2).all.mean(), 127.5);
  const std::vector<std::int8_t> small{-128, 127};
  EXPECT_EQ(array_statistics(small.data(), Element::i8, 1, 1, 2).all.min, -128);
  // 1, -2, the least normal number, the least number, infinity, no number.
  const std::vector<std::uint16_t> halves{0x3c00, 0xc000, 0x0400, 0x0001, 0x7c00, 0x7e00};
  const ArrayStatistics of_halves = array_statistics(halves.data(), Element::f16, 6, 1, 1);
  EXPECT_EQ(of_halves.peaks, (std::vector<double>{1, 2, 0x1p-14, 0x1p-24, 0, 0}));
  EXPECT_EQ(of_halves.nonfinite_rows, (std::vector<std::uint32_t>{4, 5}));
  const std::vector<std::uint16_t> brain{std::uint16_t{std::bit_cast<std::uint32_t>(-1.5F) >> 16}, 0x7f80};
  const ArrayStatistics of_brain = array_statistics(brain.data(), Element::bf16, 2, 1, 1);
  EXPECT_EQ(of_brain.all.min, -1.5);
  EXPECT_EQ(of_brain.all.nonfinite, 1U);
}

TEST(ArrayStatistics, PartsAreChannels) {
  std::vector<float> numbers(2 * 3 * 4);
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t part = 0; part < 3; ++part) {
      for (std::size_t i = 0; i < 4; ++i)
        numbers[(row * 3 + part) * 4 + i] = static_cast<float>(part * 10 + i);
    }
  }
  const ArrayStatistics found = array_statistics(numbers.data(), Element::f32, 2, 3, 4);
  ASSERT_EQ(found.parts.size(), 3U);
  EXPECT_EQ(found.parts[1].min, 10);
  EXPECT_EQ(found.parts[2].max, 23);
  EXPECT_EQ(found.parts[0].finite, 8U);
}

TEST(ArrayStatistics, EmptyArraysHaveNone) {
  const ArrayStatistics found = array_statistics(nullptr, Element::f32, 0, 1, 0);
  EXPECT_EQ(found.all.finite, 0U);
  EXPECT_EQ(found.all.mean(), 0);
  EXPECT_EQ(found.all.peak(), 0);
}

TEST(RowHashes, EqualRowsAndTheSalt) {
  std::vector<std::uint8_t> rows(3 * 5001, 7);
  rows[5001] = 8;
  const auto hashes = row_hashes(rows.data(), 3, 5001, 1);
  EXPECT_EQ(hashes[0], hashes[2]);
  EXPECT_NE(hashes[0], hashes[1]);
  EXPECT_NE(hashes, row_hashes(rows.data(), 3, 5001, 2));
  EXPECT_NE(hashes[0], row_hashes(rows.data(), 1, 5000, 1)[0]) << "another size";
}

}  // namespace
}  // namespace headrace::metrics
