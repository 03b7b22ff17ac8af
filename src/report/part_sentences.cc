#include "part_sentences.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "headrace/analysis/words.h"
#include "printable.h"
#include "wording.h"

namespace headrace::report {

using analysis::duration;
using analysis::memory_size;
using analysis::percent;
using profile::ParameterChange;
using profile::TokenProfile;

namespace {

bool is_known(const std::optional<double>& value) { return value && std::isfinite(*value); }

/// "48,300".
std::string whole_number(double value) {
  if (!std::isfinite(value)) return "-";
  std::string digits = fmt::format("{:.0f}", value);
  const std::size_t sign = digits.starts_with('-') ? 1 : 0;
  for (std::size_t at = digits.size(); at > 3 + sign; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string remote_sentence(const profile::OperatorProfile& op, const profile::Profile& profile) {
  constexpr double kWorthAWord = 0.1;  // requests a batch
  const profile::Remote& remote = *op.remote;
  const auto requests = static_cast<double>(remote.requests);
  const double per_batch = requests / std::max(1.0, static_cast<double>(profile.sink.steps));
  if (per_batch < kWorthAWord || profile.elapsed_s <= 0) return "";
  std::string text =
      fmt::format("{} makes {:.3g} requests a batch, ", shortened(op.name, kLongestName), per_batch);
  if (remote.latency.count > 0)
    text += fmt::format("latency {} (p90 {}, first byte {}), ", duration(remote.latency.p50_s),
                        duration(remote.latency.p90_s),
                        duration(remote.first_byte_s / std::max(1.0, static_cast<double>(remote.ok))));
  text += fmt::format("{}/s over all readers",
                      memory_size(static_cast<double>(remote.bytes) / profile.elapsed_s));
  const auto refused =
      static_cast<double>(remote.too_many_requests + remote.unavailable + remote.server_errors);
  if (refused > 0) text += fmt::format("; {} were refused", percent(refused / requests));
  if (remote.backoff_s > 0 && op.busy_s > 0)
    text += fmt::format("; pauses after refusals took {} of its time",
                        percent(std::min(1.0, remote.backoff_s / op.busy_s)));
  if (remote.connection_errors > 0)
    text += fmt::format("; {} had no whole answer",
                        percent(static_cast<double>(remote.connection_errors) / requests));
  return text;
}

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

std::vector<std::string> remote_sentences(const profile::Profile& profile) {
  constexpr std::size_t kMax = 8;
  std::vector<std::string> sentences;
  for (const profile::OperatorProfile& op : profile.operators) {
    std::string sentence = op.remote ? remote_sentence(op, profile) : "";
    if (!sentence.empty() && sentences.size() < kMax) sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace headrace::report
