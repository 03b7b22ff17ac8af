#include "timeline/device_facts.h"

#include <simdjson.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "headrace/analysis/device/device_work.h"
#include "headrace/timeline/json_text.h"
#include "headrace/timeline/open_events.h"
#include "headrace/trace/ascend/profile_folder.h"
#include "headrace/trace/trace.h"

namespace headrace::timeline {
namespace {

using trace::Columns;

bool is_next_call(std::string_view name) {
  return name.starts_with("enumerate(DataLoader)#") && name.ends_with("__next__");
}

void find_next_calls(const Columns& columns, DeviceFacts& facts) {
  std::vector<char> is_call(columns.names.size());
  bool any = false;
  for (trace::Names::Id id = 0; id < columns.names.size(); ++id)
    any |= (is_call[id] = is_next_call(columns.names[id]));
  if (!any) return;
  for (trace::Row row = 0; row < columns.size(); ++row) {
    if (columns.phase[row] == 'X' && is_call[columns.name[row]] != 0)
      facts.next_calls.push_back({columns.start_ns[row], columns.end_ns(row)});
  }
  std::sort(facts.next_calls.begin(), facts.next_calls.end(),
            [](const TimeRange& a, const TimeRange& b) { return a.begin_ns < b.begin_ns; });
}

/// Whole operations where the profiler tells them, else the kernels of communication libraries.
void find_collectives(const Columns& columns, const std::vector<trace::EventKind>& kinds,
                      DeviceFacts& facts) {
  using trace::EventKind;
  const bool whole = std::find(kinds.begin(), kinds.end(), EventKind::collective) != kinds.end();
  std::vector<char> communicates(columns.names.size());
  for (trace::Names::Id id = 0; id < columns.names.size(); ++id)
    communicates[id] = whole || analysis::device::kind_of_kernel(columns.names[id]) ==
                                    analysis::device::KernelKind::communication;
  for (trace::Row row = 0; row < columns.size(); ++row) {
    const bool of_device = whole ? kinds[row] == EventKind::collective : trace::is_kernel(kinds[row]);
    if (of_device && communicates[columns.name[row]] != 0)
      facts.collectives.push_back(
          {std::hash<std::string_view>()(columns.names[columns.name[row]]), columns.end_ns(row)});
  }
  std::sort(facts.collectives.begin(), facts.collectives.end(),
            [](const CollectiveEnd& a, const CollectiveEnd& b) { return a.end_ns < b.end_ns; });
}

void find_launches(const Columns& columns, const std::vector<trace::EventKind>& kinds, DeviceFacts& facts) {
  if (std::none_of(kinds.begin(), kinds.end(), trace::is_kernel)) return;
  const trace::Correlation correlation(columns, kinds);
  const auto first_thread =
      static_cast<std::uint32_t>(facts.threads.size());  // those of this rank are added behind it
  for (trace::Row row = 0; row < columns.size(); ++row) {
    if (kinds[row] != trace::EventKind::runtime) continue;
    for (const trace::Row started : correlation.started_by(row)) {
      if (!trace::is_kernel(kinds[started])) continue;
      facts.launches.push_back(
          {columns.start_ns[row], columns.start_ns[started], first_thread + columns.lane[started]});
      break;
    }
  }
  std::sort(facts.launches.begin(), facts.launches.end(),
            [](const auto& a, const auto& b) { return a.at_ns < b.at_ns; });
}

void find_processes(const Columns& columns, DeviceFacts& facts) {
  std::set<std::string> seen;
  for (const trace::Lane& lane : columns.lanes) {
    facts.threads.push_back({lane.process, lane.pid, lane.thread, lane.tid});
    if (!seen.insert(lane.process).second) continue;
    std::string name = lane.process_name;
    if (!lane.process_labels.empty()) name += (name.empty() ? "" : " ") + lane.process_labels;
    facts.processes.push_back({lane.process, lane.pid, name});
  }
}

/// A database's counters are no events.
void find_processes_of_counters(const std::string& path, DeviceFacts& facts) {
  if (trace::holds_json_events(path)) return;
  std::set<std::int64_t> seen;
  for (const trace::ascend::Counter& counter : trace::ascend::read_counters(path)) {
    if (seen.insert(counter.pid).second)
      facts.processes.push_back({std::to_string(counter.pid), counter.pid, counter.process + " NPU"});
  }
}

}  // namespace

bool DeviceFacts::knows_unix_time() const noexcept { return base_ns.has_value() || first_ns > kUnixTime; }

bool is_sound(const trace::TraceFile& file) {
  return file.notes.clean() && !file.notes.cut && file.notes.damage.empty();
}

std::vector<std::string> sound_members(const trace::TraceFile& file) {
  std::vector<std::string> members;
  simdjson::dom::parser parser;
  for (const auto& [key, value] : file.metadata) {
    if (key == "host_name") continue;  // a timeline is passed on
    // The key as it is in the file, escapes and all.
    const std::string member = "\"" + key + "\":" + value;
    simdjson::dom::element element;
    if (parser.parse("{" + member + "}").get(element) == simdjson::SUCCESS) members.push_back(member);
  }
  return members;
}

namespace {

/// Adds what one rank of the file did.
void add_rank(const trace::TraceFile& file, DeviceFacts& facts) {
  facts.whole &= is_sound(file);
  for (std::string& note : file.notes.sentences()) facts.notes.push_back(std::move(note));
  const Columns& columns = file.columns;
  for (trace::Row row = 0; row < columns.size(); ++row) {
    // Some producers stamp a few marks with 0.
    if (columns.phase[row] != 'X' || columns.start_ns[row] <= 0) continue;
    facts.first_ns = std::min(facts.first_ns, columns.start_ns[row]);
    facts.last_ns = std::max(facts.last_ns, columns.end_ns(row));
  }
  find_next_calls(columns, facts);
  const std::vector<trace::EventKind> kinds = trace::kinds_of(columns);
  find_collectives(columns, kinds, facts);
  find_launches(columns, kinds, facts);
  find_processes(columns, facts);
}

}  // namespace

DeviceFacts read_device_facts(const std::string& path) {
  trace::ReadOptions options;
  options.arguments.clear();
  const std::vector<trace::TraceFile> ranks = trace::read_traces(path, options);
  DeviceFacts facts;
  facts.path = path;
  facts.rank = ranks.front().rank;
  facts.base_ns = ranks.front().base_time_ns;
  facts.header = sound_members(ranks.front());
  facts.whole = true;
  facts.first_ns = std::numeric_limits<std::int64_t>::max();
  for (const trace::TraceFile& rank : ranks) add_rank(rank, facts);
  if (facts.last_ns == 0) facts.first_ns = 0;
  find_processes_of_counters(path, facts);
  return facts;
}

std::optional<DeviceSlice> first_kernel(const DeviceFacts& facts, const EventChanges& changes,
                                        std::int64_t unix_of_ts, std::int64_t begin_ns, std::int64_t end_ns) {
  const auto found =
      std::lower_bound(facts.launches.begin(), facts.launches.end(), begin_ns - unix_of_ts,
                       [](const DeviceFacts::Launch& launch, std::int64_t ns) { return launch.at_ns < ns; });
  if (found == facts.launches.end() || found->at_ns >= end_ns - unix_of_ts) return std::nullopt;
  const DeviceFacts::Thread& thread = facts.threads[found->thread];
  return DeviceSlice{changed_pid(thread.process, thread.pid, changes),
                     thread.tid >= 0 ? std::to_string(thread.tid) : json_text(thread.thread),
                     found->kernel_ns + unix_of_ts};
}

}  // namespace headrace::timeline
