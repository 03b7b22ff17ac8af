#include "table.h"

#include <algorithm>
#include <numeric>

#include "printable.h"

namespace headrace::report {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kWidestCell = 48;

}  // namespace

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = shortened(cell, kWidestCell);
  rows_.push_back(std::move(cells));
}

std::vector<std::string> Table::lines(std::size_t width) const {
  std::vector<std::size_t> widths(columns_.size());
  std::vector<bool> shown(columns_.size(), true);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths[c] = columns(columns_[c].title);
    for (const auto& row : rows_) widths[c] = std::max(widths[c], columns(row[c]));
  }
  const auto total = [&] {
    std::size_t sum = 0;
    for (std::size_t c = 0; c < columns_.size(); ++c) sum += shown[c] ? widths[c] + kGap : 0;
    return sum > kGap ? sum - kGap : 0;
  };
  const auto shrink = [&](bool to_nothing) {
    for (std::size_t c = 0; c < columns_.size() && total() > width; ++c) {
      const std::size_t least = to_nothing ? 1 : columns_[c].least;
      if (!columns_[c].flexible || widths[c] <= least) continue;
      widths[c] -= std::min(total() - width, widths[c] - least);
    }
  };
  shrink(false);
  while (total() > width) {
    std::size_t least = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (!shown[c] || columns_[c].flexible) continue;
      if (least == columns_.size() || columns_[c].importance < columns_[least].importance) least = c;
    }
    if (least == columns_.size()) break;
    shown[least] = false;
  }
  shrink(true);

  std::vector<std::string> out;
  const auto line_of = [&](auto&& cell) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (!shown[c]) continue;
      line += padded(shortened(cell(c), widths[c]), widths[c], columns_[c].right) + std::string(kGap, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  };
  out.push_back(line_of([&](std::size_t c) { return columns_[c].title; }));
  for (const auto& row : rows_) out.push_back(line_of([&](std::size_t c) { return row[c]; }));
  return out;
}

}  // namespace headrace::report
