#include "headrace/analysis/device/loader_waits.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "analysis/device/names_that.h"

namespace headrace::analysis::device {
namespace {

using trace::EventKind;
using trace::Row;

bool is_known_wait(std::string_view name) noexcept {
  if (name.starts_with("enumerate(DataLoader)") || name.starts_with("enumerate(DataPipe)")) return true;
  return name == "IteratorGetNextOp::DoCompute" || (name.starts_with('$') && name.ends_with(" __next__"));
}

bool speaks_of_data(std::string_view name) {
  constexpr std::array<std::string_view, 9> kData = {"next", "batch", "data",   "load", "input",
                                                     "feed", "fetch", "sample", "read"};
  constexpr std::array<std::string_view, 5> kElse = {"checkpoint", "ckpt", "save", "param", "weight"};
  std::string lower(name.substr(name.rfind(' ') + 1));  // a Python function's file and line stand before it
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto is_in = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
  return std::any_of(kData.begin(), kData.end(), is_in) && std::none_of(kElse.begin(), kElse.end(), is_in);
}

bool on_host(const trace::Trace& trace, Row row) {
  return trace.columns().phase[row] == 'X' && !trace::is_on_device(trace.kinds[row]);
}

/// Names of ranges in which something runs: a launch, work that another thread gets, a compiled function.
std::vector<bool> names_that_start_work(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  const std::vector<bool> runs = names_that(columns, [](std::string_view name) {
    return name.find("Execut") != std::string_view::npos ||
           name.find("PjitFunction") != std::string_view::npos;
  });
  const trace::ArgumentColumn* const asks = columns.argument("_p");
  std::vector<bool> starts(columns.names.size(), false);
  std::vector<bool> seen(columns.size(), false);
  const auto mark = [&](Row row) {
    for (; row != trace::kNoRow && !seen[row]; row = trace.calls.parent_of(row)) {
      seen[row] = true;
      starts[columns.name[row]] = true;
    }
  };
  for (Row row = 0; row < columns.size(); ++row) {
    if (trace.kinds[row] == EventKind::runtime || (runs[columns.name[row]] && on_host(trace, row))) mark(row);
  }
  for (std::size_t i = 0; asks != nullptr && i < asks->rows.size(); ++i) mark(asks->rows[i]);
  return starts;
}

/// The name that is the wait where none is known by itself; `missing` if none is.
trace::Names::Id inferred_wait(const trace::Trace& trace) {
  constexpr double kLeastShare = 0.05;
  const trace::Columns& columns = trace.columns();
  const trace::ArgumentColumn* const numbers = columns.argument("step_num");
  if (numbers == nullptr || numbers->rows.empty()) return trace::Names::missing;
  const std::vector<bool> starts = names_that_start_work(trace);
  std::map<trace::Names::Id, std::int64_t> spent;
  for (Row row = 0; row < columns.size(); ++row) {
    if (!on_host(trace, row) || starts[columns.name[row]]) continue;
    const Row around = trace.calls.parent_of(row);
    if (around != trace::kNoRow && numbers->find(around))
      spent[columns.name[row]] += columns.duration_ns[row];
  }
  std::int64_t steps_ns = 0;
  for (const trace::Step& step : trace.steps.all()) steps_ns += step.end_ns - step.start_ns;
  trace::Names::Id longest = trace::Names::missing;
  for (const auto& [name, ns] : spent) {
    if (static_cast<double>(ns) < kLeastShare * static_cast<double>(steps_ns)) continue;
    if (!speaks_of_data(columns.names[name])) continue;
    if (longest == trace::Names::missing || ns > spent[longest]) longest = name;
  }
  return longest;
}

}  // namespace

std::vector<bool> loader_wait_names(const trace::Trace& trace) {
  std::vector<bool> waits = names_that(trace.columns(), is_known_wait);
  if (std::find(waits.begin(), waits.end(), true) == waits.end()) {
    const trace::Names::Id inferred = inferred_wait(trace);
    if (inferred != trace::Names::missing) waits[inferred] = true;
  }
  return waits;
}

std::string longest_loader_wait(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  const std::vector<bool> waits = loader_wait_names(trace);
  std::map<trace::Names::Id, std::int64_t> spent;
  for (Row row = 0; row < columns.size(); ++row) {
    if (waits[columns.name[row]] && on_host(trace, row)) spent[columns.name[row]] += columns.duration_ns[row];
  }
  const auto longest = std::max_element(spent.begin(), spent.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  return longest == spent.end() ? std::string() : std::string(columns.names[longest->first]);
}

Intervals loader_waits(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  const std::vector<bool> waits = loader_wait_names(trace);
  std::vector<Interval> found;
  for (Row row = 0; row < columns.size(); ++row) {
    if (waits[columns.name[row]] && on_host(trace, row))
      found.push_back({columns.start_ns[row], columns.end_ns(row)});
  }
  return merged(std::move(found));
}

}  // namespace headrace::analysis::device
