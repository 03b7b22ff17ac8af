#include "diagnosis_steps.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "headrace/analysis/read/demand.h"
#include "headrace/analysis/verdict/advice.h"
#include "headrace/analysis/words.h"

namespace headrace::analysis {
namespace {

constexpr std::string_view kHowToCompare = "; record both and compare";

/// A row that takes less is a call of Python and an index into memory: nothing is read or decoded.
constexpr double kRow_s = 50e-6;
/// In smaller batches the calls are not what a step takes.
constexpr double kFewestRows = 32;

/// A change of the program, and the share of the operator's time that is left after it.
struct CodeChange {
  std::string text;
  double left = 0;
};

/// Rows in memory, asked for one by one.
std::optional<CodeChange> rows_at_once(const Case& facts) {
  const profile::OperatorProfile& op = facts.op();
  if (!facts.loader || facts.loader->rows_advice.empty()) return std::nullopt;
  const double items = op.items ? static_cast<double>(*op.items) : 0;
  if (op.items_per_batch < kFewestRows || items <= 0 || op.busy_s > kRow_s * items) return std::nullopt;
  if (cpu_bound_share(op) < kMostOf || op.kind == profile::OperatorKind::map) return std::nullopt;
  return CodeChange{"take the rows of a batch at once: each is a call of Python (" +
                    duration(op.busy_s / items) + ") and is collated by itself; " +
                    facts.loader->rows_advice};
}

/// A pandas object for each row. Its functions' classes, as `functions` names them.
std::optional<CodeChange> arrays_for_frames(const Case& facts) {
  constexpr std::array<std::string_view, 6> kPandas{"DataFrame.",  "Series.",       "NDFrame.",
                                                    "IndexFrame.", "_iLocIndexer.", "_LocationIndexer."};
  double share = 0;
  for (const profile::FunctionShare& function : facts.op().functions) {
    if (std::any_of(kPandas.begin(), kPandas.end(),
                    [&](std::string_view each) { return function.name.starts_with(each); }))
      share += function.share;
  }
  if (share < kMostOf) return std::nullopt;
  return CodeChange{"look rows up in arrays that are made once (frame.to_numpy()): " + percent(share) +
                        " of the time of " + facts.op().name + " goes into pandas' objects for single rows",
                    1 - share};
}

bool makes_tokens(std::string_view name) {
  constexpr std::array<std::string_view, 6> kWords{"tokeni",        "Tokeni",       "sentencepiece",
                                                   "SentencePiece", "_encode_plus", "tiktoken"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

/// Texts are made into tokens in each epoch anew.
std::optional<CodeChange> tokens_made_before(const Case& facts) {
  const profile::OperatorProfile& op = facts.op();
  double share = makes_tokens(op.name) ? 1 : 0;
  double named = share;
  for (const profile::FunctionShare& function : op.functions) {
    if (makes_tokens(op.name)) break;
    share += makes_tokens(function.name) ? function.share : 0;
    named += function.share;
  }
  if (share <= 0 || share < kMostOf * named) return std::nullopt;
  return CodeChange{
      "make the tokens once, before the training, and read their ids (a mapped or indexed dataset)",
      1 - share};
}

/// The step after it. Rows that come together are not collated one by one either.
Prediction predicted(const Case& facts, const CodeChange& change) {
  std::vector<Change> changes{{Change::Kind::kService, facts.candidate, 1, std::max(1e-3, change.left)}};
  for (std::size_t i = 0; change.left == 0 && i < facts.profile.operators.size(); ++i) {
    if (facts.profile.operators[i].kind == profile::OperatorKind::batch)
      changes.push_back({Change::Kind::kService, static_cast<int>(i), 1, 1e-3});
  }
  return facts.predictor.predict(changes);
}

}  // namespace

void add_code_changes(const Case& facts, Diagnosis& diagnosis) {
  if (facts.candidate < 0) return;
  for (const auto make : {rows_at_once, arrays_for_frames, tokens_made_before}) {
    const std::optional<CodeChange> change = make(facts);
    if (!change) continue;
    const Prediction then = predicted(facts, *change);
    if (then.known && !is_gain(facts.gate.step_s, then.step_s)) continue;
    Advice advice;
    advice.text = change->text + (then.known ? "" : std::string(kHowToCompare));
    advice = with_prediction(std::move(advice), facts.gate.step_s, then);
    // A parameter is changed sooner than a program: it stands behind where it gains less than half.
    const double step_s = facts.gate.step_s;
    const auto at = std::find_if(diagnosis.advice.begin(), diagnosis.advice.end(), [&](const Advice& each) {
      return then.known && step_s - each.predicted_step_s.value_or(step_s) < kMostOf * (step_s - then.step_s);
    });
    diagnosis.advice.insert(at, std::move(advice));
  }
}

}  // namespace headrace::analysis
