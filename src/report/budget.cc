#include "budget.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "headrace/analysis/words.h"
#include "printable.h"
#include "sections.h"
#include "table.h"
#include "wording.h"

namespace headrace::report {

using analysis::counted;
using analysis::duration;
using analysis::percent;
using profile::BudgetPart;

namespace {

/// Of the wall clock: what is less is not worth a section, nor a row.
constexpr double kLeastOutside = 0.1;
constexpr double kLeastRow = 0.01;
constexpr std::size_t kMostRows = 12;
constexpr std::size_t kLongestPlace = 200;

std::string word_of(std::string_view part) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {{"steps", "training steps"},
                                                                      {"waits", "waiting for batches"},
                                                                      {"startup", "start-up"},
                                                                      {"between_epochs", "between epochs"},
                                                                      {"weight_sync", "weight sync"}};
  for (const auto& [token, words] : kWords) {
    if (token == part) return std::string(words);
  }
  return std::string(part);
}

}  // namespace

bool is_training(const BudgetPart& part) { return part.part == "steps" || part.part == "waits"; }

std::vector<const BudgetPart*> rows_of(const std::vector<BudgetPart>& budget) {
  std::vector<const BudgetPart*> rows;
  for (const BudgetPart& part : budget) {
    if (std::isfinite(part.seconds) && part.share >= kLeastRow && rows.size() < kMostRows)
      rows.push_back(&part);
  }
  return rows;
}

bool leads(const std::vector<BudgetPart>& budget) {
  double training = 0;
  double largest = 0;
  for (const BudgetPart& part : budget) {
    if (is_training(part))
      training = std::max(training, part.seconds);
    else if (part.times > 1)  // what a longer run has more of, too
      largest = std::max(largest, part.seconds);
  }
  return largest > training;
}

bool is_worth_saying(const std::vector<BudgetPart>& budget) {
  double outside = 0;
  for (const BudgetPart& part : budget) outside += is_training(part) ? 0 : part.share;
  return outside >= kLeastOutside;
}

std::string part_words(const BudgetPart& part) { return word_of(part.part); }

std::string place_words(const BudgetPart& part) {
  std::vector<std::string> words;
  if (!part.function.empty()) words.push_back(part.function);
  if (!part.loader.empty() && part.function.empty()) words.push_back(part.loader);
  if (part.part == "steps")
    words.push_back(counted(static_cast<double>(part.times), "step"));
  else if (part.period && std::isfinite(*part.period))
    words.push_back("every " + number(*part.period, 0) + " steps");
  else if (part.times > 1)
    words.push_back(std::to_string(part.times) + " times");
  if (part.loader_start_s >= kLeastRow * part.seconds && part.loader_start_s < part.seconds)
    words.push_back(duration(part.loader_start_s) + " of it until first batches");
  std::string joined;
  for (const std::string& each : words) joined += (joined.empty() ? "" : ", ") + each;
  return joined;
}

std::string cure_words(const BudgetPart& part) {
  if (part.cure.empty()) return "";
  return part.cure + (part.saves_s ? ": saves up to " + duration(*part.saves_s) : "");
}

double wall_s(const std::vector<BudgetPart>& budget) {
  double all = 0;
  for (const BudgetPart& part : budget) all += std::isfinite(part.seconds) ? part.seconds : 0;
  return all;
}

std::vector<std::string> budget_section(const profile::Profile& profile, std::size_t width) {
  if (!is_worth_saying(profile.budget)) return {};
  const double wall = wall_s(profile.budget);
  Table table({{"", 9, false}, {"", 8}, {"", 7}});
  std::vector<std::string> cures;
  double rest = wall;
  const std::vector<const BudgetPart*> rows = rows_of(profile.budget);
  for (const BudgetPart* part : rows) {
    rest -= part->seconds;
    table.add({part_words(*part), duration(part->seconds), percent(part->share)});
    if (std::string cure = cure_words(*part); !cure.empty()) cures.push_back(std::move(cure));
  }
  if (rest > kLeastRow * wall) table.add({"smaller parts", duration(rest), percent(rest / wall)});
  std::vector<std::string> lines{"WHERE THE RUN'S " + duration(wall) + " WENT"};
  const std::vector<std::string> cells = table.lines(width - 2);
  std::size_t at = 0;
  for (const std::string& cell : cells) at = std::max(at, columns(cell) + 4);
  const bool beside = at <= width / 2;  // else a place has lines of its own
  if (!beside) at = 4;
  for (std::size_t i = 1; i < cells.size(); ++i) {
    const std::string place = i <= rows.size() ? shortened(place_words(*rows[i - 1]), kLongestPlace) : "";
    std::string line = "  " + cells[i];
    if (!beside || place.empty()) lines.push_back(std::exchange(line, ""));
    for (const std::string& words : wrapped(place, width - at))
      lines.push_back(padded(std::exchange(line, ""), at, false) + words);
  }
  for (const std::string& cure : cures) {
    add_sentence(lines, "    ", "do: " + shortened(cure, 600), width - 2);
  }
  return lines;
}

}  // namespace headrace::report
