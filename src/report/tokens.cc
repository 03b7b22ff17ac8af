#include "tokens.h"

#include <fmt/core.h>

#include <cmath>

#include "headrace/analysis/words.h"
#include "printable.h"
#include "wording.h"

namespace headrace::report {

using analysis::percent;
using profile::TokenProfile;

namespace {

/// "48,300".
std::string whole_number(double value) {
  if (!std::isfinite(value)) return "-";
  std::string digits = fmt::format("{:.0f}", value);
  const std::size_t sign = digits.starts_with('-') ? 1 : 0;
  for (std::size_t at = digits.size(); at > 3 + sign; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

}  // namespace

std::vector<std::string> token_sentences(const TokenProfile& tokens) {
  std::vector<std::string> sentences;
  std::string batch =
      fmt::format("a batch has {} tokens in {} places: {} of what a step computes is padding",
                  whole_number(tokens.tokens), whole_number(tokens.places), percent(tokens.padding_share));
  if (tokens.tokens_per_s) batch += "; " + whole_number(*tokens.tokens_per_s) + " tokens a second";
  sentences.push_back(batch);
  std::string rows = fmt::format(
      "{} {}, {}; ", number(tokens.rows, tokens.rows < 10 && tokens.rows != std::round(tokens.rows) ? 1 : 0),
      tokens.rows == 1 ? "row" : "rows", tokens.fixed_width ? "all of one width" : "as wide as their batch");
  if (tokens.sequences_per_row > 1)
    rows += fmt::format("{} sequences are packed into each; ", number(tokens.sequences_per_row, 1));
  rows += fmt::format("sequences of {} tokens (half of them up to {}, nine of ten up to {}, the longest {})",
                      whole_number(tokens.length_mean), whole_number(static_cast<double>(tokens.length_p50)),
                      whole_number(static_cast<double>(tokens.length_p90)),
                      whole_number(static_cast<double>(tokens.length_max)));
  sentences.push_back(rows);
  if (tokens.rank_imbalance)
    sentences.push_back("the rank with the most tokens of a step has " + percent(*tokens.rank_imbalance) +
                        " more than the ranks' mean, and the others wait for it");
  return sentences;
}

std::vector<std::string> token_advice(const TokenProfile& tokens) {
  std::vector<std::string> advice;
  for (const profile::TokenSaving& each : tokens.savings)
    advice.push_back(shortened(each.says, 300) +
                     (each.change == "batch_by_tokens" ? ": the largest batch gets " : ": saves ") +
                     percent(each.saves) +
                     (each.change == "batch_by_tokens" ? " smaller" : " of the places that a step computes"));
  return advice;
}

std::vector<std::string> token_section(const profile::Profile& profile, std::size_t width) {
  if (!profile.tokens) return {};
  std::vector<std::string> lines{"TOKENS"};
  const auto add = [&](const std::string& first, const std::string& says) {
    const std::vector<std::string> words = wrapped(says, width - columns(first));
    for (std::size_t i = 0; i < words.size(); ++i)
      lines.push_back((i == 0 ? first : std::string(columns(first), ' ')) + words[i]);
  };
  for (const std::string& each : token_sentences(*profile.tokens)) add("  ", each);
  for (const std::string& each : token_advice(*profile.tokens)) add("    do: ", each);
  return lines;
}

}  // namespace headrace::report
