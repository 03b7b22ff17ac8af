#include "block.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "printable.h"
#include "table.h"

namespace headrace::report {

namespace {

/// No more rows than a screen has; page and JSON have the others.
constexpr std::size_t kTextItems = 24;
constexpr std::size_t kTextRows = 8;
constexpr std::size_t kBar = 12;
constexpr std::size_t kLongestNote = 200;

std::string bar(double share) {
  const double filled = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) * static_cast<double>(kBar) : 0;
  std::string text;
  for (std::size_t i = 0; i < static_cast<std::size_t>(filled + 0.5); ++i) text += "█";
  return text.empty() && share > 0 ? "▏" : text;
}

void add_bars(Lines& lines, const Block& block, std::size_t width) {
  Table table({{block.titles[0], 9, false, true}, {block.titles[1], 8}, {"", 2, false}});
  for (std::size_t i = 0; i < std::min(kTextRows, block.rows.size()); ++i) {
    const BlockRow& row = block.rows[i];
    table.add({row.name, row.figures.front(), bar(row.share) + " " + row.figures.back()});
  }
  for (const std::string& line : table.lines(width - 2)) lines.push_back("  " + line);
}

/// Rows with the place of each beside it, or in lines of its own where that leaves less than half of the width.
void add_places(Lines& lines, const Block& block, std::size_t width) {
  Table table({{"", 9, false}, {"", 8}, {"", 7}});
  for (const BlockRow& row : block.rows) table.add({row.name, row.figures.front(), row.figures.back()});
  Lines cells = table.lines(width - 2);
  cells.erase(cells.begin());
  std::size_t at = 0;
  for (const std::string& cell : cells) at = std::max(at, columns(cell) + 4);
  const bool beside = at <= width / 2;
  if (!beside) at = 4;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string place = shortened(block.rows[i].note, kLongestNote);
    std::string line = "  " + cells[i];
    if (!beside || place.empty()) lines.push_back(std::exchange(line, ""));
    for (const std::string& words : wrapped(place, width - at))
      lines.push_back(padded(std::exchange(line, ""), at, false) + words);
  }
}

}  // namespace

std::string headed(const std::string& heading) {
  std::string text = heading;
  bool is_unit = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && text[i - 1] == ' ')
      is_unit = i > 1 && std::isdigit(static_cast<unsigned char>(text[i - 2])) != 0;
    if (!is_unit) text[i] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[i])));
  }
  return text;
}

void add_sentence(Lines& lines, const std::string& first, const std::string& says, std::size_t width) {
  const std::size_t indent = columns(first);
  const Lines words = wrapped(says, width - indent);
  for (std::size_t i = 0; i < words.size(); ++i)
    lines.push_back((i == 0 ? first : std::string(indent, ' ')) + words[i]);
}

Lines lines_of(const Block& block, std::size_t width) {
  if (block.empty()) return {};
  Lines lines{headed(block.heading)};
  for (const std::string& says : block.says) add_sentence(lines, "  ", shortened(says, 600), width);
  for (std::size_t i = 0; i < std::min(kTextItems, block.items.size()); ++i) {
    const BlockItem& item = block.items[i];
    if (block.name_width == 0) {
      add_sentence(lines, "  ", shortened(item.name + ": " + item.says, 1200), width);
    } else if (item.in_text) {
      add_sentence(lines, "  " + padded(item.name, block.name_width), shortened(item.says, 1200), width);
    }
    add_sentence(lines, "    " + item.word + ": ", shortened(item.then, 600), width);
  }
  if (block.items.size() > kTextItems)
    lines.push_back("  and " + std::to_string(block.items.size() - kTextItems) + " more");
  if (block.has_places) {
    add_places(lines, block, width);
  } else if (!block.titles.empty() && !block.rows.empty()) {
    add_bars(lines, block, width);
  }
  for (const std::string& cure : block.cures) add_sentence(lines, "    do: ", shortened(cure, 600), width);
  return lines;
}

nlohmann::json json_of(const Block& block) {
  using nlohmann::json;
  if (block.empty()) return nullptr;
  json items = json::array();
  json rows = json::array();
  for (const BlockItem& item : block.items)
    items.push_back({{"name", item.name}, {"says", item.says}, {"word", item.word}, {"then", item.then}});
  for (const BlockRow& row : block.rows) {
    rows.push_back({{"name", row.name},
                    {"note", row.note},
                    {"share", row.share},
                    {"hot", row.hot},
                    {"figures", row.figures}});
  }
  return {{"heading", block.heading}, {"says", block.says}, {"items", items},
          {"of", block.of},           {"rows", rows},       {"cures", block.cures}};
}

}  // namespace headrace::report
