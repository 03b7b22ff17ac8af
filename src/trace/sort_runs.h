// Sorting of what is nearly in order: events of a trace come as a few lists that ascend in time, one behind
// the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace headrace::trace {

/// Sorts `items`; equal ones keep their order. Finds the ascending runs and merges neighbours until one is
/// left: one look where all is in order, n log(runs) steps else. std::sort takes n log(n), and twice that
/// where a few runs lie behind each other, which is what it likes least.
template <class Item, class Less>
void sort_runs(std::vector<Item>& items, const Less& less) {
  std::vector<std::size_t> ends;  // of the runs
  for (std::size_t i = 1; i <= items.size(); ++i) {
    if (i == items.size() || less(items[i], items[i - 1])) ends.push_back(i);
  }
  if (ends.size() * 4 > items.size()) return std::stable_sort(items.begin(), items.end(), less);

  std::vector<Item> merged;
  while (ends.size() > 1) {
    merged.resize(items.size());
    std::size_t runs = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < ends.size(); i += 2) {
      const std::size_t end = ends[std::min(i + 1, ends.size() - 1)];
      const auto at = [&](std::size_t place) { return items.begin() + static_cast<std::ptrdiff_t>(place); };
      std::merge(at(begin), at(ends[i]), at(ends[i]), at(end),
                 merged.begin() + static_cast<std::ptrdiff_t>(begin), less);
      ends[runs++] = begin = end;
    }
    ends.resize(runs);
    items.swap(merged);
  }
}

}  // namespace headrace::trace
