#include "analysis/device/advice/held_up.h"

#include <map>
#include <utility>

#include "analysis/device/names_that.h"
#include "analysis/device/step_windows.h"
#include "headrace/analysis/device/advice_thresholds.h"
#include "headrace/analysis/device/loader_waits.h"

namespace headrace::analysis::device {

namespace {

bool is_memory_call(std::string_view name) noexcept {
  if (!name.starts_with("cuda") && !name.starts_with("hip") && !name.starts_with("cu")) return false;
  if (name.find("Async") != std::string_view::npos) return false;
  return name.find("Malloc") != std::string_view::npos || name.find("Free") != std::string_view::npos ||
         name.find("HostAlloc") != std::string_view::npos;
}

bool compiles(std::string_view name) noexcept {
  name = name.substr(name.rfind(' ') + 1);  // behind a function's file and line
  const std::size_t at = name.find("ompil");
  if (at == std::string_view::npos || name.ends_with("wrapper")) return false;
  const std::string_view ending =
      name.substr(at + 5);  // not "compiled", "compiler": those run what was compiled
  return ending.starts_with("ation") ||
         (ending.starts_with('e') && ending.substr(0, 2) != "ed" && ending.substr(0, 2) != "er");
}

}  // namespace

std::vector<HostCall> one_offs(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  const auto has = [&](std::string_view part) {
    return names_that(columns,
                      [&](std::string_view name) { return name.find(part) != std::string_view::npos; });
  };
  const std::vector<bool> begins = has("StreamBeginCapture");
  const std::vector<bool> ends = has("StreamEndCapture");
  const std::vector<bool> instantiates = has("GraphInstantiate");
  const std::vector<bool> compiling = names_that(columns, compiles);
  const std::vector<bool> others = names_that(columns, [](std::string_view name) {
    return trace::waits_for_device(name) || is_memory_call(name) ||
           name.find("emcpy") != std::string_view::npos;
  });
  std::vector<HostCall> found;
  std::map<std::uint32_t, trace::Row> capturing;  // by lane
  for (trace::Row row = 0; row < columns.size(); ++row) {
    const trace::Names::Id name = columns.name[row];
    const Interval time{columns.start_ns[row], columns.end_ns(row)};
    const bool is_call = trace.kinds[row] == trace::EventKind::runtime;
    if (is_call && begins[name]) capturing[columns.lane[row]] = row;
    if (const auto begun = capturing.find(columns.lane[row]);
        is_call && ends[name] && begun != capturing.end()) {
      found.push_back({begun->second, {columns.start_ns[begun->second], time.end_ns}});
      capturing.erase(begun);
    }
    const bool is_long =
        is_call && !others[name] && columns.duration_ns[row] >= kAdviceThresholds.long_call_ns;
    const bool is_compilation =
        compiling[name] && columns.phase[row] == 'X' && !trace::is_on_device(trace.kinds[row]);
    if (is_long || is_compilation || (is_call && instantiates[name])) found.push_back({row, time});
  }
  return found;
}

std::vector<HostCall> memory_calls(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  const std::vector<bool> of_memory = names_that(columns, is_memory_call);
  std::vector<HostCall> calls;
  for (trace::Row row = 0; row < columns.size(); ++row) {
    if (trace.kinds[row] == trace::EventKind::runtime && of_memory[columns.name[row]])
      calls.push_back({row, {columns.start_ns[row], columns.end_ns(row)}});
  }
  return calls;
}

Intervals held_up(const trace::Trace& trace) {
  std::vector<Interval> times;
  for (const trace::Row row : trace::waits_for_older_work(trace))
    times.push_back({trace.columns().start_ns[row], trace.columns().end_ns(row)});
  for (const auto& calls : {memory_calls(trace), one_offs(trace)}) {
    for (const HostCall& each : calls) times.push_back(each.time);
  }
  return united(loader_waits(trace), merged(std::move(times)));
}

}  // namespace headrace::analysis::device
