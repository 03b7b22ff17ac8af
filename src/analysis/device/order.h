// The greatest first, and lists of names as text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::analysis::device {

/// Sorts by what `value` says of an element, the greatest first. Equal elements keep their order.
template <class Elements, class Value>
void sort_descending(Elements& elements, Value value) {
  std::stable_sort(elements.begin(), elements.end(),
                   [&](const auto& a, const auto& b) { return value(a) > value(b); });
}

/// The places 0 to `count` - 1 in that order.
template <class Value>
std::vector<std::size_t> descending_order(std::size_t count, Value value) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  sort_descending(order, value);
  return order;
}

/// The elements of a map by `value` of what they hold, the greatest first.
template <class Map, class Value>
auto descending_entries(const Map& map, Value value) {
  std::vector<std::pair<typename Map::key_type, typename Map::mapped_type>> entries(map.begin(), map.end());
  sort_descending(entries, [&](const auto& entry) { return value(entry.second); });
  return entries;
}

/// "a, b, c": `text` makes a text of each element.
template <class Elements, class Text = std::identity>
std::string joined(const Elements& elements, std::string_view between, Text text = {}) {
  std::string result;
  bool is_first = true;
  for (const auto& each : elements) {
    if (!is_first) result += between;
    is_first = false;
    result += text(each);
  }
  return result;
}

/// "1, 2, 3".
template <class Numbers>
std::string joined_numbers(const Numbers& numbers) {
  return joined(numbers, ", ", [](auto number) { return std::to_string(number); });
}

}  // namespace headrace::analysis::device
