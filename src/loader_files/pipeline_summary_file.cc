#include "headrace/loader_files/pipeline_summary_file.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "headrace/profile/errors.h"
#include "json_document.h"
#include "text_file.h"
#include "units.h"

namespace headrace::loader_files {
namespace {

/// -1 stands for what is not known.
std::optional<double> known(std::optional<double> value, double divided_by) {
  if (!value || *value < 0) return std::nullopt;
  return *value / divided_by;
}

std::optional<int> as_workers(std::optional<double> value) {
  if (!value || !(*value >= 0 && *value < 1 << 20)) return std::nullopt;
  return static_cast<int>(*value);
}

/// Value `i` of a list of the file by its name; empty where there is none.
using Lookup = std::function<std::optional<double>(const char* list, std::size_t i)>;

void add_figures(const Lookup& value, std::vector<SummaryOperator>& operators) {
  for (std::size_t i = 0; i < operators.size(); ++i) {
    SummaryOperator& op = operators[i];
    op.workers = as_workers(value("num_workers", i));
    op.queue_average_size = known(value("queue_average_size", i), 1);
    op.queue_utilisation = known(value("queue_utilization_pct", i), kPercent);
    op.queue_empty_share = known(value("queue_empty_freq_pct", i), kPercent);
    op.cpu_percent = known(value("avg_cpu_pct", i), 1);
  }
}

std::string first_text(Json root, const char* name) {
  const auto list = array_of(root, name);
  if (!list) return "";
  for (const Json each : *list) return text_of(each).value_or("");
  return "";
}

}  // namespace

PipelineFile PipelineSummaryFile::as_pipeline() const {
  PipelineFile file;
  for (const SummaryOperator& each : operators) {
    PipelineOperator op;
    op.id = each.id;
    op.type = each.name + "Op";
    op.workers = each.workers;
    op.children = each.children;
    if (each.queue_average_size) {
      op.queue.emplace();
      if (each.queue_utilisation.value_or(0) > 0)
        op.queue->capacity = std::llround(std::min(*each.queue_average_size / *each.queue_utilisation, 1e12));
    }
    file.operators.push_back(std::move(op));
  }
  make_forest(file);
  return file;
}

PipelineSummaryFile read_pipeline_summary(std::string_view text, const std::string& path) {
  const JsonDocument document(text, path);
  const Json root = document.root();
  const auto ids = array_of(root, "op_ids");
  const auto names = array_of(root, "op_names");
  if (!ids || !names || ids->size() == 0 || ids->size() != names->size() || ids->size() > kMaxOperators)
    throw FormatError(path, 0, "lists \"op_ids\" and \"op_names\" of a pipeline's operators");
  PipelineSummaryFile file;
  for (const Json id : *ids) file.operators.emplace_back().id = integer_of(id).value_or(-1);
  std::size_t at = 0;
  for (const Json name : *names) file.operators[at++].name = text_of(name).value_or("");
  if (const auto children = array_of(root, "children_ids")) {
    at = 0;
    for (const Json list : *children) {
      simdjson::dom::array of;
      if (at >= file.operators.size()) break;
      if (list.get(of) == simdjson::SUCCESS) {
        for (const Json child : of) {
          if (const auto id = integer_of(child)) file.operators[at].children.push_back(*id);
        }
      }
      ++at;
    }
  }
  std::map<std::string, std::vector<double>> lists;
  add_figures(
      [&](const char* list, std::size_t i) -> std::optional<double> {
        const auto [found, is_new] = lists.try_emplace(list);
        if (is_new) found->second = numbers_of(root, list).value_or(std::vector<double>{});
        if (i >= found->second.size() || std::isnan(found->second[i])) return std::nullopt;
        return found->second[i];
      },
      file.operators);
  file.bottleneck = first_text(root, "bottleneck_warning");
  file.suggestion = first_text(root, "bottleneck_suggestion");
  return file;
}

PipelineSummaryFile read_pipeline_summary_table(std::string_view text, const std::string& path) {
  std::map<std::string, Row, std::less<>> lines;
  for (Row& row : rows_of(text, path)) {
    std::string name = row.front();
    row.erase(row.begin());
    lines.emplace(std::move(name), std::move(row));
  }
  const Row& ids = lines["op_ids"];
  const Row& names = lines["op_names"];
  if (ids.empty() || ids.size() != names.size() || ids.size() > kMaxOperators)
    throw FormatError(path, 0, "lines \"op_ids\" and \"op_names\" of a pipeline's operators");
  const Row& children = lines["children_ids"];
  PipelineSummaryFile file;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    SummaryOperator& op = file.operators.emplace_back();
    op.id = whole_number(ids[i]).value_or(-1);
    op.name = names[i];
    if (i < children.size()) op.children = list_of(children[i]).value_or(std::vector<std::int64_t>{});
  }
  add_figures(
      [&](const char* list, std::size_t i) -> std::optional<double> {
        const auto found = lines.find(list);
        if (found == lines.end() || i >= found->second.size()) return std::nullopt;
        return number(found->second[i]);
      },
      file.operators);
  const auto first = [&](const char* name) {
    return lines[name].empty() ? std::string() : lines[name].front();
  };
  file.bottleneck = first("bottleneck_warning");
  file.suggestion = first("bottleneck_suggestion");
  return file;
}

}  // namespace headrace::loader_files
