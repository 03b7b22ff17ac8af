#include "../../src/trace/sort_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <utility>
#include <vector>

namespace headrace::trace {
namespace {

using Item = std::pair<int, std::size_t>;  // the key, and where it stood

/// Keys of so many ascending runs.
std::vector<Item> in_runs(std::size_t count, std::size_t runs) {
  std::mt19937 random(static_cast<unsigned>(count * 31 + runs));
  std::vector<int> keys(count);
  for (int& key : keys) key = static_cast<int>(random() % (count / 2 + 1));
  for (std::size_t run = 0; run < runs; ++run) {
    std::sort(keys.begin() + static_cast<std::ptrdiff_t>(count * run / runs),
              keys.begin() + static_cast<std::ptrdiff_t>(count * (run + 1) / runs));
  }
  std::vector<Item> items;
  for (const int key : keys) items.emplace_back(key, items.size());
  return items;
}

TEST(SortRuns, SortsAndKeepsTheOrderOfEqualOnes) {
  const auto by_key = [](const Item& a, const Item& b) { return a.first < b.first; };
  for (const std::size_t count : {0U, 1U, 2U, 3U, 17U, 1000U}) {
    for (const std::size_t runs : {1U, 2U, 3U, 7U, 8U, 1000U}) {
      std::vector<Item> items = in_runs(count, runs);
      std::vector<Item> expected = items;
      std::stable_sort(expected.begin(), expected.end(), by_key);
      sort_runs(items, by_key);
      EXPECT_EQ(items, expected) << count << " items, " << runs << " runs";
    }
  }
}

TEST(SortRuns, SortsWhatDescends) {
  std::vector<int> items = {5, 4, 3, 2, 1};
  sort_runs(items, std::less<>());
  EXPECT_EQ(items, (std::vector<int>{1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace headrace::trace
