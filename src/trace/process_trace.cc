#include "trace/process_trace.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <tuple>

namespace headrace::trace {
namespace {

/// Behind every process and thread, whose numbers have 24 bits at most: devices as one process sees them, and
/// ranges that do not nest.
constexpr std::int64_t kBehindThreads = std::int64_t{1} << 24;
constexpr std::int64_t kDeviceBits = 8;
constexpr std::int64_t kDeviceMask = (1 << kDeviceBits) - 1;

constexpr Row kNotThere = ~Row{0};

ArgumentColumn rows_of(const ArgumentColumn& all, const std::vector<Row>& new_row) {
  ArgumentColumn some{all.argument, {}, {}, {}, {}};
  for (std::size_t i = 0; i < all.rows.size(); ++i) {
    if (new_row[all.rows[i]] == kNotThere) continue;
    some.rows.push_back(new_row[all.rows[i]]);
    if (!all.integers.empty()) some.integers.push_back(all.integers[i]);
    if (!all.numbers.empty()) some.numbers.push_back(all.numbers[i]);
    if (!all.texts.empty()) some.texts.push_back(all.texts[i]);
  }
  return some;
}

/// The events of some lanes; lanes and names stay as they are.
Columns rows_of(const Columns& all, const std::vector<bool>& lanes) {
  Columns some;
  some.names = all.names;
  some.lanes = all.lanes;
  std::vector<Row> new_row(all.size(), kNotThere);
  for (Row row = 0; row < all.size(); ++row) {
    if (!lanes[all.lane[row]]) continue;
    new_row[row] = static_cast<Row>(some.size());
    some.name.push_back(all.name[row]);
    some.category.push_back(all.category[row]);
    some.phase.push_back(all.phase[row]);
    some.start_ns.push_back(all.start_ns[row]);
    some.duration_ns.push_back(all.duration_ns[row]);
    some.lane.push_back(all.lane[row]);
    some.stream.push_back(all.stream[row]);
    some.correlation.push_back(all.correlation[row]);
    some.external_id.push_back(all.external_id[row]);
    some.position.push_back(all.position[row]);
  }
  some.flow_id = rows_of(all.flow_id, new_row);
  for (const ArgumentColumn& each : all.arguments) some.arguments.push_back(rows_of(each, new_row));
  return some;
}

std::vector<TraceFile> one(TraceFile file) {
  std::vector<TraceFile> files;
  files.push_back(std::move(file));
  return files;
}

}  // namespace

ProcessTrace::ProcessTrace(const std::string& path, std::int64_t process, const ReadOptions& options)
    : pid(process), rows(file.columns, file.notes, options.arguments) {
  file.path = path;
}

std::uint32_t ProcessTrace::thread_lane(std::int64_t thread, std::string_view label, bool nests) {
  const std::pair row(pid, nests ? thread : thread + kBehindThreads);
  if (last_row_ != row) {
    last_row_ = row;
    last_lane_ =
        rows.lane(pid, row.second, "", "CPU", nests ? std::string(label) : std::string(label) + ", ranges");
  }
  return last_lane_;
}

std::uint32_t ProcessTrace::device_lane(std::int64_t device, std::int64_t stream, std::string_view label) {
  const std::pair row(kBehindThreads + (pid << kDeviceBits) + (device & kDeviceMask), stream);
  if (last_row_ != row) {
    last_row_ = row;
    std::string name(label);
    if (name.empty()) name = stream == kAbsent ? "no stream" : "stream " + std::to_string(stream);
    last_lane_ = rows.lane(row.first, stream, "", device_kind + " " + std::to_string(device), name);
  }
  return last_lane_;
}

bool ProcessTrace::add_work(const EventRow& event, std::int64_t device) {
  if (!rows.add(event)) return false;
  lowest_device = std::min(lowest_device, device);
  rows.integer("device", device);
  return true;
}

std::vector<TraceFile> ranks_of(const std::vector<ProcessTrace*>& processes, std::vector<std::string> remarks,
                                const std::string& path) {
  const auto any = [&](auto&& is) { return std::any_of(processes.begin(), processes.end(), is); };
  const bool works = any([](const ProcessTrace* process) { return process->has_work(); });
  const bool calls = any([](const ProcessTrace* process) { return process->calls; });
  std::vector<std::tuple<std::int64_t, std::size_t>> wanted;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const ProcessTrace& process = *processes[i];
    if (works ? process.has_work() : !calls || process.calls) {
      wanted.emplace_back(process.lowest_device, i);
    } else {
      remarks.push_back("process " + std::to_string(process.pid) + " has no work on a device: its " +
                        std::to_string(process.file.columns.size()) + " events are left out");
    }
  }
  std::sort(wanted.begin(), wanted.end());
  std::vector<TraceFile> traces;
  for (const auto& [device, i] : wanted) traces.push_back(std::move(processes[i]->file));
  if (traces.empty()) traces.emplace_back().path = path;
  std::vector<std::string>& said = traces.front().notes.remarks;
  said.insert(said.end(), remarks.begin(), remarks.end());
  return traces;
}

std::vector<TraceFile> split_ranks(TraceFile file) {
  const Columns& columns = file.columns;
  const ArgumentColumn* const ranks = columns.argument("rank");
  std::vector<std::int64_t> of_lane(columns.lanes.size(), kAbsent);
  std::set<std::int64_t> found;
  for (std::size_t i = 0; ranks != nullptr && i < ranks->rows.size(); ++i) {
    std::int64_t& rank = of_lane[columns.lane[ranks->rows[i]]];
    if (rank != kAbsent && rank != ranks->integers[i])
      return one(std::move(file));  // not its own, but a peer's
    found.insert(rank = ranks->integers[i]);
  }
  if (found.size() < 2 || *found.begin() < 0) return one(std::move(file));
  std::vector<TraceFile> files;
  for (const std::int64_t rank : found) {
    std::vector<bool> lanes;
    for (const std::int64_t of : of_lane)
      lanes.push_back(of == rank || (of == kAbsent && rank == *found.begin()));
    files.push_back({file.path, rows_of(columns, lanes), file.notes, rank, file.base_time_ns, file.metadata});
  }
  return files;
}

std::string plain_text(std::string_view text) {
  constexpr std::size_t kLongest = 100;
  std::string kept(text.substr(0, kLongest));
  std::erase_if(kept, [](char c) { return c < ' ' || c > '~' || c == '"' || c == '\\'; });
  return kept;
}

}  // namespace headrace::trace
