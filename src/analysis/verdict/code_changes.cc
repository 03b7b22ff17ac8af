#include "diagnosis_steps.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "headrace/analysis/read/demand.h"
#include "headrace/analysis/words.h"

namespace headrace::analysis {
namespace {

constexpr std::string_view kHowToCompare = "; record both and compare";

/// A row that takes less is a call of Python and an index into memory: nothing is read or decoded.
constexpr double kRow_s = 50e-6;
/// In smaller batches the calls are not what a step takes.
constexpr double kFewestRows = 32;
constexpr double kRowComputes = 0.8;

/// Rows in memory, asked for one by one.
std::optional<std::string> rows_at_once(const Case& facts) {
  const profile::OperatorProfile& op = facts.op();
  if (!facts.loader || facts.loader->rows_advice.empty()) return std::nullopt;
  const double items = op.items ? static_cast<double>(*op.items) : 0;
  if (op.items_per_batch < kFewestRows || items <= 0 || op.busy_s > kRow_s * items) return std::nullopt;
  if (cpu_bound_share(op) < kRowComputes || op.kind == profile::OperatorKind::map) return std::nullopt;
  return "take the rows of a batch at once: each is a call of Python (" + duration(op.busy_s / items) +
         ") and is collated by itself; " + facts.loader->rows_advice;
}

/// A pandas object for each row. Its functions' classes, as `functions` names them.
std::optional<std::string> arrays_for_frames(const Case& facts) {
  constexpr std::array<std::string_view, 6> kPandas{"DataFrame.",  "Series.",       "NDFrame.",
                                                    "IndexFrame.", "_iLocIndexer.", "_LocationIndexer."};
  double share = 0;
  for (const profile::FunctionShare& function : facts.op().functions) {
    if (std::any_of(kPandas.begin(), kPandas.end(),
                    [&](std::string_view each) { return function.name.starts_with(each); }))
      share += function.share;
  }
  if (share < kMostOf) return std::nullopt;
  return "look rows up in arrays that are made once (frame.to_numpy()): " + percent(share) +
         " of the time of " + facts.op().name + " goes into pandas' objects for single rows";
}

bool makes_tokens(std::string_view name) {
  constexpr std::array<std::string_view, 6> kWords{"tokeni",        "Tokeni",       "sentencepiece",
                                                   "SentencePiece", "_encode_plus", "tiktoken"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

/// Texts are made into tokens in each epoch anew.
std::optional<std::string> tokens_made_before(const Case& facts) {
  const profile::OperatorProfile& op = facts.op();
  double share = makes_tokens(op.name) ? 1 : 0;
  if (share == 0) {
    for (const profile::FunctionShare& function : op.functions)
      share += makes_tokens(function.name) ? function.share : 0;
  }
  if (share < kMostOf) return std::nullopt;
  std::string text =
      "make the tokens once, before the training, and read their ids (a mapped or indexed dataset)";
  const double rest = std::max(0.0, 1 - share);
  const Prediction then = facts.predictor.predict({{Change::Kind::kService, facts.candidate, 1, rest}});
  if (!then.known || !facts.interventions.known()) return text;
  const double step_s = facts.gate.step_s * then.step_s / facts.interventions.as_is_s;
  return text + ": without making them a step would take " + duration(step_s) + " instead of " +
         duration(facts.gate.step_s);
}

}  // namespace

std::vector<Advice> advise_code_changes(const Case& facts) {
  std::vector<Advice> advice;
  if (facts.candidate < 0) return advice;
  for (const auto change : {rows_at_once, arrays_for_frames, tokens_made_before}) {
    if (std::optional<std::string> text = change(facts)) {
      Advice each;
      each.text = *std::move(text) + std::string(kHowToCompare);
      advice.push_back(std::move(each));
    }
  }
  return advice;
}

}  // namespace headrace::analysis
