// The wall clock of a run.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "block.h"
#include "headrace/analysis/words.h"
#include "wording.h"

namespace headrace::report {

using analysis::counted;
using analysis::duration;
using analysis::percent;
using profile::BudgetPart;

namespace {

/// Shares of the wall clock; less is not worth a section, nor a row.
constexpr double kLeastOutside = 0.1;
constexpr double kLeastRow = 0.01;
constexpr std::size_t kMostRows = 12;

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

bool is_training(const BudgetPart& part) { return part.part == "steps" || part.part == "waits"; }

/// Where, how often: "save (train.py:52), every 40 steps".
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

/// "evaluate half as often (evaluate (train.py:41)): saves up to 1.90 s"; "" if nothing is to be done.
std::string cure_words(const BudgetPart& part) {
  if (part.cure.empty()) return "";
  return part.cure + (part.saves_s ? ": saves up to " + duration(*part.saves_s) : "");
}

}  // namespace

bool budget_leads(const profile::Profile& profile) {
  double training = 0;
  double largest = 0;
  for (const BudgetPart& part : profile.budget) {
    if (is_training(part))
      training = std::max(training, part.seconds);
    else if (part.times > 1)  // what a longer run has more of, too
      largest = std::max(largest, part.seconds);
  }
  return largest > training;
}

Block budget_block(const profile::Profile& profile) {
  double wall_s = 0;
  double outside = 0;
  for (const BudgetPart& part : profile.budget) {
    wall_s += std::isfinite(part.seconds) ? part.seconds : 0;
    outside += is_training(part) ? 0 : part.share;
  }
  Block block{
      .heading = "Where the run's " + duration(wall_s) + " went", .of = " of the run", .has_places = true};
  if (!(outside >= kLeastOutside)) return block;
  const auto add = [&](std::string name, std::string place, double seconds, double share, bool hot) {
    block.rows.push_back(
        {std::move(name), std::move(place), share, hot, {duration(seconds), percent(share)}});
  };
  double rest_s = wall_s;
  for (const BudgetPart& part : profile.budget) {
    if (!std::isfinite(part.seconds) || !(part.share >= kLeastRow) || block.rows.size() == kMostRows)
      continue;
    rest_s -= part.seconds;
    add(word_of(part.part), place_words(part), part.seconds, part.share, !is_training(part));
    if (std::string cure = cure_words(part); !cure.empty()) block.cures.push_back(std::move(cure));
  }
  if (rest_s > kLeastRow * wall_s) add("smaller parts", "", rest_s, rest_s / wall_s, false);
  return block;
}

}  // namespace headrace::report
