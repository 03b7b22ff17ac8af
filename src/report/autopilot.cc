#include "autopilot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headrace/analysis/words.h"
#include "printable.h"
#include "wording.h"

namespace headrace::report {

using analysis::duration;
using profile::ParameterChange;

namespace {

constexpr std::size_t kMostChanges = 12;
constexpr std::size_t kLongestChange = 400;

bool is_known(const std::optional<double>& value) { return value && std::isfinite(*value); }

}  // namespace

std::string change_sentence(const ParameterChange& change) {
  std::string text = fmt::format("{} {} -> {} (step {}): ", change.parameter, change.from_value,
                                 change.to_value, change.step);
  if (change.outcome != "kept" && change.outcome != "put_back") {
    text += "tried last, and not judged";
  } else {
    text += change.outcome == "kept" ? "kept" : "put back";
    if (!change.says.empty()) text += ", " + change.says;
    if (is_known(change.low) && is_known(change.high))
      text += fmt::format(" ({:.2f} to {:.2f} times as long)", *change.low, *change.high);
  }
  if (is_known(change.predicted_step_s)) text += ", predicted " + duration(*change.predicted_step_s);
  return text;
}

std::vector<std::string> autopilot_section(const profile::Profile& profile, std::size_t width) {
  if (profile.autopilot.empty()) return {};
  std::vector<std::string> lines{"SET WHILE IT TRAINED"};
  const auto add = [&](const std::string& text) {
    for (const std::string& line : wrapped(shortened(text, kLongestChange), width - 4))
      lines.push_back("  " + line);
  };
  for (std::size_t i = 0; i < std::min(kMostChanges, profile.autopilot.size()); ++i)
    add(change_sentence(profile.autopilot[i]));
  return lines;
}

}  // namespace headrace::report
