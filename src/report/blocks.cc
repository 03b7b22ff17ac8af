// The blocks of a report that the text and the page share.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "block.h"
#include "headrace/analysis/words.h"
#include "printable.h"
#include "wording.h"

namespace headrace::report {

using analysis::counted;
using analysis::duration;
using analysis::memory_size;
using analysis::percent;
using profile::ParameterChange;
using profile::TokenProfile;
using profile::WaitReason;

namespace {

constexpr std::size_t kBlockItems = 64;
constexpr std::size_t kMaxNotes = 32;
/// Rows of a ledger; what is smaller than the least share is counted together.
constexpr std::size_t kLedgerRows = 24;
constexpr double kLeastShare = 0.001;
/// A screenful of operators.
constexpr std::size_t kMaxOperators = 8;

/// "shared memory", "stuck worker": the name of a risk.
std::string risk_words(analysis::RiskKind kind) {
  std::string words(name_of(kind));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

/// "in decode", "blocked behind an older batch in decode": what the awaited batch was going through.
std::string ledger_words(const profile::LedgerRow& row) {
  const std::string& op = row.op;
  switch (row.what.known().value_or(WaitReason::unknown)) {
    case WaitReason::in_service:
      return op.empty() ? "in service" : "in " + op;
    case WaitReason::waiting_for_worker:
      return "waiting for a worker" + (op.empty() ? "" : " of " + op);
    case WaitReason::order:
      return "blocked behind an older batch" + (op.empty() ? "" : " in " + op);
    case WaitReason::handoff:
      return "hand-off to the training loop";
    case WaitReason::unknown:
      break;
  }
  return row.what.text();
}

std::string transfer_sentence(const profile::OperatorProfile& op) {
  if (!op.transfer || op.transfer->copies == 0) return "";
  const profile::Transfer& transfer = *op.transfer;
  const auto copies = static_cast<double>(transfer.copies);
  std::string text = fmt::format("{} copies {} a batch", shortened(op.name, kLongestName),
                                 memory_size(static_cast<double>(transfer.bytes) / copies));
  if (transfer.bytes_per_s) text += fmt::format(" at {}/s", memory_size(*transfer.bytes_per_s));
  if (transfer.pinned_share)
    text += fmt::format(", {} of it from page-locked memory", percent(*transfer.pinned_share));
  if (transfer.buffer_wait_s > 0)
    text += fmt::format("; it waits {} a batch for a free buffer of the device",
                        duration(transfer.buffer_wait_s / copies));
  return text;
}

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
      fmt::format("A batch has {} tokens in {} places: {} of what a step computes is padding",
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
    sentences.push_back("The rank with the most tokens of a step has " + percent(*tokens.rank_imbalance) +
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

/// "" if it was not recorded.
std::string handoff_sentence(const profile::Profile& profile) {
  if (!profile.handoff || profile.handoff->batches == 0) return "";
  const profile::Handoff& handoff = *profile.handoff;
  const std::string tensors = number(handoff.tensors, 0);
  std::string text = fmt::format(
      "each batch sends {} through a pipe and {} tensor{} through shared memory; pickling {} in the worker, "
      "receiving {} ({} of CPU) in the training loop's process",
      memory_size(handoff.message_bytes), tensors, tensors == "1" ? "" : "s", duration(handoff.pickle_s),
      duration(handoff.receive_s), duration(handoff.receive_cpu_s));
  if (handoff.unused_batches > 0) {
    text += fmt::format("; {} {} prefetched and never used", handoff.unused_batches,
                        handoff.unused_batches == 1 ? "batch was" : "batches were");
  }
  return text;
}

}  // namespace

Block autopilot_block(const profile::Profile& profile) {
  Block block{.heading = "Set while it trained"};
  for (std::size_t i = 0; i < std::min(kLedgerRows, profile.autopilot.size()); ++i)
    block.says.push_back(change_sentence(profile.autopilot[i]));
  return block;
}

Block risk_block(const analysis::Diagnosis& diagnosis) {
  Block block{.heading = "Risks", .name_width = 16};
  for (const analysis::Risk& risk : diagnosis.risks)
    block.items.push_back({risk_words(risk.kind), risk.says + ". " + risk.cure + "."});
  return block;
}

Block finding_block(const profile::Profile& profile) {
  Block block{.heading = "Findings in data and training"};
  for (std::size_t i = 0; i < std::min(kBlockItems, profile.findings.size()); ++i) {
    const profile::Finding& each = profile.findings[i];
    block.items.push_back({each.severity + ", " + each.kind, each.says + ".", "do", each.cure});
  }
  return block;
}

Block token_block(const profile::Profile& profile) {
  Block block{.heading = "Tokens", .of = " of the sequences"};
  if (!profile.tokens) return block;
  for (const std::string& each : token_sentences(*profile.tokens)) block.says.push_back(each + ".");
  block.cures = token_advice(*profile.tokens);
  for (std::size_t i = 0; i < std::min(kLedgerRows, profile.tokens->lengths.size()); ++i) {
    const profile::LengthBin& bin = profile.tokens->lengths[i];
    block.rows.push_back(
        {"up to " + std::to_string(bin.up_to) + " tokens", "", bin.share, false, {percent(bin.share)}});
  }
  return block;
}

Block ledger_block(const profile::Profile& profile, const analysis::Diagnosis& diagnosis) {
  Block block{.heading = "What the wait was for", .of = " of the wait", .titles = {"", "a step"}};
  std::vector<profile::LedgerRow> rows;
  double total = 0;
  for (const profile::LedgerRow& row : profile.stall_ledger) {
    if (!std::isfinite(row.seconds) || !(row.seconds > 0)) continue;
    total += row.seconds;
    rows.push_back(row);
  }
  const auto steps = static_cast<double>(profile.sink.getnext_wait.count);
  if (rows.empty() || steps == 0 || !std::isfinite(total)) return block;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  const auto add = [&](std::string words, double seconds, bool hot) {
    block.rows.push_back(
        {std::move(words), "", seconds / total, hot, {duration(seconds / steps), percent(seconds / total)}});
  };
  double rest = total;
  for (const profile::LedgerRow& row : rows) {
    if (block.rows.size() == kLedgerRows || row.seconds < kLeastShare * total) break;
    add(ledger_words(row), row.seconds, diagnosis.op && row.op == *diagnosis.op);
    rest -= row.seconds;
  }
  const std::size_t left = rows.size() - block.rows.size();
  if (left > 0) add(counted(static_cast<double>(left), "smaller part"), std::max(0.0, rest), false);
  block.says = {"What the awaited batch was doing while the training loop waited for it, per step: " +
                duration(total / steps) + " in all."};
  return block;
}

Block evidence_block(const profile::Profile& profile, const analysis::Diagnosis& diagnosis) {
  Block block{.heading = "Evidence", .name_width = 10};
  for (const analysis::Evidence& each : diagnosis.evidence) {
    // In the text, a cause stands under the headline.
    block.items.push_back(
        {std::string(name_of(each.rule)), each.says, "", "", each.rule != analysis::Rule::cause});
  }
  if (std::string handoff = handoff_sentence(profile); !handoff.empty())
    block.items.push_back({"hand-off", std::move(handoff)});
  const auto add_operators = [&](const char* name, const auto& sentence_of) {
    std::size_t added = 0;
    for (const profile::OperatorProfile& op : profile.operators) {
      std::string sentence = sentence_of(op);
      if (!sentence.empty() && added++ < kMaxOperators) block.items.push_back({name, std::move(sentence)});
    }
  };
  add_operators("transfer", transfer_sentence);
  add_operators("requests", [&](const auto& op) { return op.remote ? remote_sentence(op, profile) : ""; });
  for (std::size_t i = 0; i < std::min(kMaxNotes, profile.notes.size()); ++i)
    block.items.push_back({"note", profile.notes[i]});
  return block;
}

Block opinion_block(const profile::Profile& profile) {
  Block block{.heading = "Second opinions"};
  for (std::size_t i = 0; i < std::min(kBlockItems, profile.second_opinions.size()); ++i) {
    const profile::SecondOpinion& each = profile.second_opinions[i];
    block.items.push_back({each.tool + ", " + each.rule, each.says, "misled", each.misled});
  }
  return block;
}

}  // namespace headrace::report
