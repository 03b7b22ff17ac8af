#include "analysis/device/rank_set.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace headrace::analysis::device {

std::vector<std::int64_t> ranks_in(std::string_view text) {
  std::vector<std::int64_t> ranks;
  for (std::size_t at = 0; at < text.size();) {
    std::int64_t rank = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), rank);
    if (error != std::errc()) {
      ++at;
      continue;
    }
    ranks.push_back(rank);
    at = static_cast<std::size_t>(end - text.data());
  }
  return ranks;
}

void add_set(std::vector<std::int64_t> ranks, std::vector<std::vector<std::int64_t>>& sets) {
  if (!ranks.empty() && std::find(sets.begin(), sets.end(), ranks) == sets.end())
    sets.push_back(std::move(ranks));
}

}  // namespace headrace::analysis::device
