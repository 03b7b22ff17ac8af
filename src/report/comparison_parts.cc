#include "comparison_parts.h"

#include <algorithm>
#include <cmath>

#include "headrace/analysis/words.h"
#include "headrace/report/comparison.h"
#include "printable.h"

namespace headrace::report {

using analysis::ComparedFigure;
using analysis::duration;
using analysis::percent;

namespace {

constexpr std::size_t kMaxComparedRows = 64;
/// Share of the step's difference from which on a part of the step is named for it.
constexpr double kInPart = 0.3;
/// Times of one worker that differ by less are the same.
constexpr double kAsFast = 0.1;

std::string name_of_side(const std::string& name) { return shortened(printable(name), kLongestName); }

std::string name_of_loader(const std::string& loader) {
  return shortened(printable(loader.empty() ? "loader" : loader), kLongestName);
}

/// "12 % longer", "a third of the time": how b differs from a.
std::string difference(const ComparedFigure& figure) {
  if (figure.ratio >= 2) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g times as long", figure.ratio);
    return text;
  }
  return figure.ratio > 1 ? percent(figure.ratio - 1) + " longer" : percent(1 - figure.ratio) + " less";
}

std::string interval_words(const ComparedFigure& figure) {
  if (!std::isfinite(figure.high)) return "-";
  char text[48];
  std::snprintf(text, sizeof text, "%.3g to %.3g", figure.low, figure.high);
  return text;
}

std::vector<std::string> row_of(const std::string& name, const ComparedFigure& figure) {
  char ratio[24];
  std::snprintf(ratio, sizeof ratio, "%.3g", figure.ratio);
  return {name,
          duration(figure.a),
          duration(figure.b),
          figure.a > 0 && figure.b > 0 ? ratio : "-",
          interval_words(figure),
          figure.changed ? "changed" : ""};
}

std::string verdict_words(const analysis::ComparedVerdict& verdict) {
  std::string text = verdict.kind;
  std::replace(text.begin(), text.end(), '_', ' ');
  if (!verdict.op.empty()) text += ", " + shortened(printable(verdict.op), kLongestName);
  if (verdict.cause.empty()) return text;
  std::string cause = verdict.cause;
  std::replace(cause.begin(), cause.end(), '_', ' ');
  return text + " (" + cause + ")";
}

std::string of_runs(std::size_t runs) {
  return runs > 1 ? ", mean of " + analysis::counted(static_cast<double>(runs), "run") : "";
}

}  // namespace

std::string headline_of(const analysis::Comparison& comparison) {
  const ComparedFigure& step = comparison.step;
  const std::string steps = duration(step.a) + " -> " + duration(step.b) + " a step";
  if (!comparison.reason.empty()) return comparison.reason;
  if (step.changed) return name_of_side(comparison.name_b) + " takes " + difference(step) + ": " + steps;
  return "no difference that is more than chance: " + steps + " (" + interval_words(step) + " times)";
}

namespace {

/// With other workers, an operator's demand says how many there are; what is new is how long one of them takes.
std::string operator_words(const analysis::ComparedOperator& op) {
  if (op.workers_a == op.workers_b || !op.demand)
    return op.demand && op.demand->changed ? " takes " + difference(*op.demand) : "";
  ComparedFigure each = *op.demand;
  each.ratio *= static_cast<double>(std::max(1, op.workers_b)) / std::max(1, op.workers_a);
  const std::string workers =
      " has " + analysis::counted(op.workers_b, "worker") + " instead of " + std::to_string(op.workers_a);
  if (std::abs(each.ratio - 1) < kAsFast) return workers + ", each as fast as before";
  return workers + ", each of which takes " + difference(each);
}

}  // namespace

std::string explanation(const analysis::Comparison& comparison) {
  std::string text;
  if (comparison.step.changed && comparison.reason.empty()) {
    const double whole = std::abs(comparison.step.b - comparison.step.a);
    const double waits = comparison.wait.b - comparison.wait.a;
    const double computes = comparison.compute.b - comparison.compute.a;
    const auto part = [](const char* name, const ComparedFigure& figure) {
      return std::string(name) + " (" + duration(figure.a) + " -> " + duration(figure.b) + ")";
    };
    text = "The difference is in ";
    if (std::abs(waits) >= kInPart * whole) text += part("the wait for input", comparison.wait);
    if (std::min(std::abs(waits), std::abs(computes)) >= kInPart * whole) text += " and in ";
    if (std::abs(computes) >= kInPart * whole) text += part("the training step", comparison.compute);
    text += ".";
  }
  std::string changed;
  for (const analysis::ComparedOperator& op : comparison.operators) {
    const std::string name = shortened(printable(op.name), kLongestName);
    if (op.in_a != op.in_b) {
      changed += (changed.empty() ? "" : "; ") + name + (op.in_b ? " is new" : " is gone");
    } else if (const std::string words = operator_words(op); !words.empty()) {
      changed += (changed.empty() ? "" : "; ") + name + words;
    }
    if (changed.size() > 300) break;
  }
  if (!changed.empty()) text += (text.empty() ? "" : " ") + std::string("Operators: ") + changed + ".";
  return text;
}

std::vector<std::string> remarks(const analysis::Comparison& comparison) {
  std::vector<std::string> lines;
  lines.push_back(name_of_side(comparison.name_a) + ": " + name_of_loader(comparison.loader_a) +
                  of_runs(comparison.runs_a) + ": " + verdict_words(comparison.verdict_a));
  lines.push_back(name_of_side(comparison.name_b) + ": " + name_of_loader(comparison.loader_b) +
                  of_runs(comparison.runs_b) + ": " + verdict_words(comparison.verdict_b));
  lines.insert(lines.end(), comparison.notes.begin(), comparison.notes.end());
  return lines;
}

std::vector<ComparisonTable> tables(const analysis::Comparison& comparison) {
  const std::string a = name_of_side(comparison.name_a);
  const std::string b = name_of_side(comparison.name_b);
  ComparisonTable settings{"Set differently", {"", a, b}, {}};
  for (const analysis::ComparedSetting& each : comparison.settings) {
    if (settings.rows.size() == kMaxComparedRows) break;
    settings.rows.push_back({each.name, each.a.empty() ? "-" : each.a, each.b.empty() ? "-" : each.b});
  }
  const std::vector<std::string> figures{"", a, b, "ratio", "99 % interval", ""};
  ComparisonTable step{"A step", figures, {}};
  step.rows.push_back(row_of("step", comparison.step));
  step.rows.push_back(row_of("GetNext wait", comparison.wait));
  step.rows.push_back(row_of("training step", comparison.compute));
  ComparisonTable operators{"Operators: time a batch / workers", figures, {}};
  for (const analysis::ComparedOperator& op : comparison.operators) {
    if (operators.rows.size() == kMaxComparedRows) break;
    if (op.demand) {
      operators.rows.push_back(row_of(op.name, *op.demand));
    } else {
      operators.rows.push_back(
          {op.name, op.in_a ? "not timed" : "-", op.in_b ? "not timed" : "-", "-", "-", ""});
    }
  }
  std::vector<ComparisonTable> all;
  for (ComparisonTable* each : {&settings, &step, &operators}) {
    if (!each->rows.empty()) all.push_back(std::move(*each));
  }
  return all;
}

}  // namespace headrace::report
