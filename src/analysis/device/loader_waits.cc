#include "headrace/analysis/device/loader_waits.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/device/names_that.h"

namespace headrace::analysis::device {
namespace {

using trace::EventKind;
using trace::Row;

bool is_known_wait(std::string_view name) noexcept {
  if (name.starts_with("enumerate(DataLoader)") || name.starts_with("enumerate(DataPipe)")) return true;
  if (name.starts_with("IteratorGetNext")) return name.ends_with("::DoCompute");
  return (name.starts_with('$') && name.ends_with(" __next__"));
}

/// Words of a name in lower case: "nextBatch" and "next_batch" have two.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  bool was_lower = false;
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    const bool begins = std::isupper(letter) != 0 && was_lower;
    if ((std::isalpha(letter) == 0 || begins) && !words.back().empty()) words.emplace_back();
    if (std::isalpha(letter) != 0) words.back() += static_cast<char>(std::tolower(letter));
    was_lower = std::islower(letter) != 0;
  }
  return words;
}

bool speaks_of_data(std::string_view name) {
  constexpr std::array<std::string_view, 18> kData = {
      "next",  "batch",  "batches", "data",   "dataset", "loader",   "dataloader", "load", "loading",
      "input", "inputs", "feed",    "infeed", "fetch",   "iterator", "sample",     "read", "dequeue"};
  constexpr std::array<std::string_view, 7> kElse = {"checkpoint", "ckpt",    "save", "params",
                                                     "parameters", "weights", "model"};
  const std::vector<std::string> words =
      words_of(name.substr(name.rfind(' ') + 1));  // behind a function's file and line
  const auto any_of = [&](const auto& wanted) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return std::find(wanted.begin(), wanted.end(), word) != wanted.end();
    });
  };
  return any_of(kData) && !any_of(kElse);
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

bool is_step(const trace::Trace& trace, Row row) {
  if (row == trace::kNoRow || trace.steps.step_of(row) == trace::Steps::kNone) return false;
  const trace::Step& step = trace.steps.all()[static_cast<std::size_t>(trace.steps.step_of(row))];
  return trace.columns().start_ns[row] == step.start_ns && trace.columns().end_ns(row) == step.end_ns;
}

/// Whether a range in which nothing starts can be told from one that computes: a device works, or the steps
/// are those of JAX and TensorFlow, whose computations have names of their own.
bool tells_what_works(const trace::Trace& trace) {
  const trace::ArgumentColumn* const numbers = trace.columns().argument("step_num");
  return !trace.device_rows.empty() || (numbers != nullptr && !numbers->rows.empty());
}

/// The name that is the wait where none is known by itself; `missing` if none is.
trace::Names::Id inferred_wait(const trace::Trace& trace) {
  constexpr double kLeastShare = 0.05;
  const trace::Columns& columns = trace.columns();
  if (trace.steps.all().empty() || !tells_what_works(trace)) return trace::Names::missing;
  const std::vector<bool> starts = names_that_start_work(trace);
  std::set<Row> around_steps;
  for (Row row = 0; row < columns.size(); ++row) {
    if (on_host(trace, row) && is_step(trace, row)) around_steps.insert(trace.calls.parent_of(row));
  }
  std::map<trace::Names::Id, std::int64_t> spent;
  for (Row row = 0; row < columns.size(); ++row) {
    if (!on_host(trace, row) || starts[columns.name[row]]) continue;
    const Row around = trace.calls.parent_of(row);
    // In a step, or beside the steps: a for loop gets its batch before a step begins.
    const bool beside = trace.steps.step_of(row) == trace::Steps::kNone && around_steps.contains(around);
    if (beside || is_step(trace, around)) spent[columns.name[row]] += columns.duration_ns[row];
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

std::string shown_range(std::string_view name) {
  const std::size_t space = name.find(' ');
  if (!name.starts_with('$') || space == std::string_view::npos) return std::string(name);
  return std::string(name.substr(space + 1)).append(" (").append(name.substr(1, space - 1)).append(")");
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
