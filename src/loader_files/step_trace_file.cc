#include "headrace/loader_files/step_trace_file.h"

#include "headrace/profile/errors.h"
#include "json_document.h"
#include "text_file.h"

namespace headrace::loader_files {
namespace {

constexpr double kTick_s = 1e-8;
constexpr std::string_view kStart = "_start_point";
constexpr std::string_view kEnd = "_end_point";

/// A collective has a column for its start and one for its end.
struct CollectiveColumns {
  std::string name;
  std::string start;
  std::string end;
};

std::vector<CollectiveColumns> collectives_in(const Row& names, const Heading& heading) {
  std::vector<CollectiveColumns> found;
  for (const std::string& name : names) {
    if (!name.ends_with(kStart) || name.size() == kStart.size()) continue;
    const std::string stem = name.substr(0, name.size() - kStart.size());
    const std::string end = stem + std::string(kEnd);
    if (heading.place(end) < 0) continue;
    found.push_back({stem, name, end});
  }
  return found;
}

std::optional<double> seconds(const Heading& heading, const Row& row, std::string_view name) {
  const std::optional<double> ticks = number(heading.value(row, name));
  if (!ticks) return std::nullopt;
  return *ticks * kTick_s;
}

std::optional<CollectiveTime> collective(const Heading& heading, const Row& row, const CollectiveColumns& of,
                                         double step_start_s) {
  const std::optional<double> start = seconds(heading, row, of.start);
  const std::optional<double> end = seconds(heading, row, of.end);
  if (!start || !end || *start <= 0 || *end < *start || *start < step_start_s) return std::nullopt;
  return CollectiveTime{*start - step_start_s, *end - *start};
}

StepRow step_of(const Heading& heading, const Row& row, const std::vector<CollectiveColumns>& collectives) {
  StepRow step;
  step.start_s = seconds(heading, row, "start_point").value_or(0);
  step.end_s = seconds(heading, row, "end_point").value_or(0);
  step.total_s = seconds(heading, row, "total").value_or(step.end_s - step.start_s);
  step.interval_s = seconds(heading, row, "iteration_interval").value_or(0);
  step.forward_backward_s = seconds(heading, row, "fp_and_bp");
  if (!step.forward_backward_s) step.forward_backward_s = seconds(heading, row, "fp");
  step.tail_s = seconds(heading, row, "tail");
  for (const CollectiveColumns& each : collectives)
    step.collectives.push_back(collective(heading, row, each, step.start_s));
  return step;
}

bool is_whole(const StepRow& step) {
  return step.start_s > 0 && step.end_s >= step.start_s && step.total_s >= 0 && step.interval_s >= 0 &&
         step.forward_backward_s.value_or(0) >= 0 && step.tail_s.value_or(0) >= 0;
}

}  // namespace

StepTraceFile read_step_trace(std::string_view text, const std::string& path) {
  const std::vector<Row> rows = rows_of(text, path);
  const Row names = rows.empty() ? Row{} : rows.front();
  const Heading heading(names);
  if (heading.place("step_num") < 0 || heading.place("start_point") < 0 || heading.place("end_point") < 0)
    throw FormatError(path, 0, "a table of steps with the columns step_num, start_point and end_point");
  const std::vector<CollectiveColumns> collectives = collectives_in(names, heading);
  StepTraceFile file;
  for (const CollectiveColumns& each : collectives) file.collectives.push_back(each.name);
  std::size_t left_out = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::optional<std::int64_t> number = whole_number(heading.value(rows[i], "step_num"));
    StepRow step = step_of(heading, rows[i], collectives);
    // The average has no number, or 0, and is the last row.
    if (i + 1 == rows.size() && number.value_or(0) == 0) {
      file.average = std::move(step);
      continue;
    }
    if (!number || !is_whole(step)) {
      ++left_out;
      continue;
    }
    step.number = *number;
    file.steps.push_back(std::move(step));
  }
  if (left_out > 0)
    file.notes.push_back(std::to_string(left_out) + " rows of the step trace lack a point and are left out");
  if (file.steps.empty() && !file.average) throw FormatError(path, 0, "at least one step below the heading");
  return file;
}

StepPoints read_step_points(std::string_view text, const std::string& path) {
  const JsonDocument document(text, path);
  Json root = document.root();
  // One object, or one for each step.
  simdjson::dom::array list;
  if (root.get(list) == simdjson::SUCCESS) {
    for (const Json each : list) {
      root = each;
      break;
    }
  }
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS)
    throw FormatError(path, 0, "an object with \"fp_start\" and \"bp_end\"");
  // Newer files have an object for each graph or step below its number.
  if (!member(root, "fp_start") && !member(root, "bp_end")) {
    for (const simdjson::dom::key_value_pair each : object) {
      if (member(each.value, "fp_start") || member(each.value, "bp_end")) {
        root = each.value;
        break;
      }
    }
  }
  StepPoints points;
  const std::optional<Json> begins = member(root, "fp_start");
  const std::optional<Json> ends = member(root, "bp_end");
  if (begins) points.forward_begins = text_of(*begins).value_or("");
  if (ends) points.backward_ends = text_of(*ends).value_or("");
  return points;
}

}  // namespace headrace::loader_files
