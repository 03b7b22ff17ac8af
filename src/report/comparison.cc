#include "headrace/report/comparison.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "comparison_parts.h"
#include "headrace/profile/json_fields.h"
#include "printable.h"
#include "table.h"

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
namespace {

void add_wrapped(std::string& text, const std::string& sentence, std::size_t width) {
  for (const std::string& line : wrapped(sentence, width - 2)) text += "  " + line + "\n";
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

std::string heading(std::string title) {
  std::transform(title.begin(), title.end(), title.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return title;
}

}  // namespace

std::string to_text(const analysis::Comparison& comparison, TextOptions options) {
  const auto width = static_cast<std::size_t>(std::clamp(options.width, 40, 1000));
  std::string text;
  for (const std::string& line : wrapped(headline_of(comparison), width))
    text += (options.color ? "\x1b[1m" + line + "\x1b[0m" : line) + "\n";
  add_wrapped(text, explanation(comparison), width);
  text += "\n";
  for (const std::string& remark : remarks(comparison)) add_wrapped(text, remark, width);
  for (const ComparisonTable& part : tables(comparison)) {
    text += "\n" + heading(part.title) + "\n";
    for (const std::string& line : table_of(part).lines(width - 2)) text += "  " + line + "\n";
  }
  return text;
}

std::string to_json(const analysis::Comparison& comparison, int indent) {
  return profile::dump_json(profile::JsonFieldWriter::object_of(comparison), indent);
}

std::string page_json(const analysis::Comparison& comparison) {
  nlohmann::json page{{"comparison", profile::JsonFieldWriter::object_of(comparison)},
                      {"headline", headline_of(comparison)},
                      {"explanation", explanation(comparison)},
                      {"remarks", remarks(comparison)},
                      {"tables", nlohmann::json::array()}};
  for (const ComparisonTable& part : tables(comparison))
    page["tables"].push_back({{"title", part.title}, {"columns", part.columns}, {"rows", part.rows}});
  return profile::dump_json(page, -1);
}

}  // namespace headrace::report
