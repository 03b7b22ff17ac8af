#include "headrace/report/comparison.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "headrace/analysis/words.h"
#include "headrace/profile/json_fields.h"
#include "printable.h"
#include "sections.h"

namespace headrace::analysis {

template <class F>
void fields_of(F& field, const ComparedFigure& figure) {
  field("a", figure.a);
  field("b", figure.b);
  field("ratio", figure.ratio);
  field("low", figure.low);
  field("high", figure.high);
  field("changed", figure.changed);
}

template <class F>
void fields_of(F& field, const ComparedOperator& op) {
  field("name", op.name);
  field("demand", op.demand);
  field("in_a", op.in_a);
  field("in_b", op.in_b);
  field("workers_a", op.workers_a);
  field("workers_b", op.workers_b);
}

template <class F>
void fields_of(F& field, const ComparedSetting& setting) {
  field("name", setting.name);
  field("a", setting.a);
  field("b", setting.b);
}

template <class F>
void fields_of(F& field, const ComparedVerdict& verdict) {
  field("kind", verdict.kind);
  field("operator", verdict.op);
  field("cause", verdict.cause);
  field("confidence", verdict.confidence);
}

template <class F>
void fields_of(F& field, const Comparison& comparison) {
  field("name_a", comparison.name_a);
  field("name_b", comparison.name_b);
  field("loader_a", comparison.loader_a);
  field("loader_b", comparison.loader_b);
  field("runs_a", comparison.runs_a);
  field("runs_b", comparison.runs_b);
  field("reason", comparison.reason);
  field("step", comparison.step);
  field("wait", comparison.wait);
  field("compute", comparison.compute);
  field("operators", comparison.operators);
  field("settings", comparison.settings);
  field("verdict_a", comparison.verdict_a);
  field("verdict_b", comparison.verdict_b);
  field("notes", comparison.notes);
}

}  // namespace headrace::analysis

namespace headrace::report {

using analysis::ComparedFigure;
using analysis::duration;
using analysis::percent;

namespace {

struct ComparisonTable {
  std::string title;
  std::vector<std::string> columns;  ///< the first one is the name
  std::vector<std::vector<std::string>> rows;
};

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
  if (figure.ratio >= 2) return fmt::format("{:.3g} times as long", figure.ratio);
  return figure.ratio > 1 ? percent(figure.ratio - 1) + " longer" : percent(1 - figure.ratio) + " less";
}

std::string interval_words(const ComparedFigure& figure) {
  return std::isfinite(figure.high) ? fmt::format("{:.3g} to {:.3g}", figure.low, figure.high) : "-";
}

std::vector<std::string> row_of(const std::string& name, const ComparedFigure& figure) {
  return {name,
          duration(figure.a),
          duration(figure.b),
          figure.a > 0 && figure.b > 0 ? fmt::format("{:.3g}", figure.ratio) : "-",
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

/// One or two sentences below the headline: where the difference is, and which operators changed.
std::string where_it_differs(const analysis::Comparison& comparison) {
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

/// Each side's verdict, and what makes the comparison unsure.
std::vector<std::string> remarks(const analysis::Comparison& comparison) {
  std::vector<std::string> lines;
  lines.push_back(name_of_side(comparison.name_a) + ": " + name_of_loader(comparison.loader_a) +
                  of_runs(comparison.runs_a) + ": " + verdict_words(comparison.verdict_a));
  lines.push_back(name_of_side(comparison.name_b) + ": " + name_of_loader(comparison.loader_b) +
                  of_runs(comparison.runs_b) + ": " + verdict_words(comparison.verdict_b));
  lines.insert(lines.end(), comparison.notes.begin(), comparison.notes.end());
  return lines;
}

/// Settings that differ, the step, the operators; those with rows.
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

Table table_of(const ComparisonTable& part) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < part.columns.size(); ++i) {
    columns.push_back({part.columns[i], i == 4 ? 1 : 9, i > 0, i == 0, 20});
  }
  Table table(std::move(columns));
  for (const std::vector<std::string>& row : part.rows) table.add(row);
  return table;
}

}  // namespace

std::string headline_of(const analysis::Comparison& comparison) {
  const ComparedFigure& step = comparison.step;
  const std::string steps = duration(step.a) + " -> " + duration(step.b) + " a step";
  if (!comparison.reason.empty()) return comparison.reason;
  if (step.changed) return name_of_side(comparison.name_b) + " takes " + difference(step) + ": " + steps;
  return "no difference that is more than chance: " + steps + " (" + interval_words(step) + " times)";
}

std::string to_text(const analysis::Comparison& comparison, TextOptions options) {
  const auto width = static_cast<std::size_t>(std::clamp(options.width, 40, 1000));
  Lines lines;
  for (const std::string& line : wrapped(headline_of(comparison), width))
    lines.push_back(options.color ? "\x1b[1m" + line + "\x1b[0m" : line);
  add_sentence(lines, "  ", where_it_differs(comparison), width);
  lines.emplace_back();
  for (const std::string& remark : remarks(comparison)) add_sentence(lines, "  ", remark, width);
  for (const ComparisonTable& part : tables(comparison)) {
    lines.insert(lines.end(), {"", headed(part.title)});
    add_table(lines, table_of(part), width);
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string to_json(const analysis::Comparison& comparison, int indent) {
  return profile::dump_json(profile::JsonFieldWriter::object_of(comparison), indent);
}

std::string page_json(const analysis::Comparison& comparison) {
  nlohmann::json page{{"comparison", profile::JsonFieldWriter::object_of(comparison)},
                      {"headline", headline_of(comparison)},
                      {"explanation", where_it_differs(comparison)},
                      {"remarks", remarks(comparison)},
                      {"tables", nlohmann::json::array()}};
  for (const ComparisonTable& part : tables(comparison))
    page["tables"].push_back({{"title", part.title}, {"columns", part.columns}, {"rows", part.rows}});
  return profile::dump_json(page, -1);
}

}  // namespace headrace::report
