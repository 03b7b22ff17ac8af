#include "headrace/analysis/device/memory.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/device/calls.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

/// "Memcpy HtoD (Pageable -> Device)" without what is in brackets: one name per direction.
std::string_view direction(std::string_view name) noexcept {
  if (name.starts_with("Memset")) return "Memset";
  if (!name.starts_with("Memcpy")) return name;
  const std::string_view outside = name.substr(0, name.find('('));
  return outside.substr(0, outside.find_last_not_of(' ') + 1);
}

/// Nothing copies more at once; what claims to is counted as so much.
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 53;

struct Copy {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  double gbps = 0;
};

struct Copies {
  std::vector<Copy> copies;
  std::int64_t count = 0;
  std::int64_t bytes = 0;
};

/// The argument columns of a trace, asked for row by row.
class CopyArguments {
 public:
  explicit CopyArguments(const trace::Columns& columns)
      : bandwidth_(columns.argument("memory bandwidth (GB/s)")), bytes_(columns.argument("bytes")) {}

  std::int64_t bytes(trace::Row row) const {
    return std::clamp<std::int64_t>(integer_at(bytes_, row).value_or(0), 0, kMaxBytes);
  }

  /// GB/s is bytes per nanosecond. 0 if there is no figure.
  double gbps(const Work& work) const {
    if (bandwidth_ != nullptr) {
      if (const auto at = bandwidth_->find(work.row)) return bandwidth_->numbers[*at];
    }
    const std::int64_t duration_ns = work.end_ns - work.start_ns;
    if (duration_ns == 0) return 0;
    return static_cast<double>(bytes(work.row)) / static_cast<double>(duration_ns);
  }

 private:
  const trace::ArgumentColumn* bandwidth_;
  const trace::ArgumentColumn* bytes_;
};

struct Level {
  std::int64_t time_ns = 0;
  double gbps = 0;
  std::size_t running = 0;
};

/// The sum of what runs, one entry per moment at which it changes.
std::vector<Level> levels_of(const std::vector<Copy>& copies) {
  struct Change {
    std::int64_t time_ns;
    double gbps;
    int running;
  };
  std::vector<Change> changes;
  changes.reserve(2 * copies.size());
  for (const Copy& copy : copies) {
    changes.push_back({copy.start_ns, copy.gbps, 1});
    changes.push_back({copy.end_ns, -copy.gbps, -1});
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.time_ns < b.time_ns; });
  std::vector<Level> levels;
  Level now;
  for (std::size_t i = 0; i < changes.size();) {
    now.time_ns = changes[i].time_ns;
    for (; i < changes.size() && changes[i].time_ns == now.time_ns; ++i) {
      now.gbps += changes[i].gbps;
      now.running += static_cast<std::size_t>(changes[i].running);
    }
    // Rounding errors of the sums must not look like a very slow copy.
    if (now.running == 0) now.gbps = 0;
    levels.push_back(now);
  }
  return levels;
}

}  // namespace

MemoryBandwidth memory_bandwidth(std::span<const trace::Trace> traces, const Scope& scope) {
  Rows<MemoryBandwidthSeriesColumns> series;
  Rows<MemoryBandwidthColumns> summary;
  for (const trace::Trace& trace : traces) {
    const trace::Columns& columns = trace.columns();
    const DeviceWork all = device_work(trace, scope);
    summary.take_notes(all.notes);
    const CopyArguments arguments(columns);
    std::map<std::string_view, Copies> by_name;
    std::size_t without_figure = 0;
    for (const Work& work : all.work) {
      if (work.kind != KernelKind::memory) continue;
      Copies& copies = by_name[direction(columns.name_of(work.row))];
      ++copies.count;
      copies.bytes += arguments.bytes(work.row);
      const double bandwidth = arguments.gbps(work);
      const bool counts_in_time = work.end_ns > work.start_ns;
      if (counts_in_time && bandwidth > 0) copies.copies.push_back({work.start_ns, work.end_ns, bandwidth});
      if (counts_in_time && !(bandwidth > 0)) ++without_figure;
    }
    for (const auto& [name, copies] : by_name) {
      double highest = kNoFigure;
      std::vector<Held> held;
      const std::vector<Level> levels = levels_of(copies.copies);
      for (std::size_t i = 0; i < levels.size(); ++i) {
        series.add(trace.rank, name, levels[i].time_ns, levels[i].gbps);
        if (levels[i].running == 0) continue;  // never the last one: that ends the last copy
        held.push_back({levels[i].gbps, levels[i + 1].time_ns - levels[i].time_ns});
        if (!(highest >= levels[i].gbps)) highest = levels[i].gbps;
      }
      const TimeWeighted over_time = weigh(std::move(held));
      summary.add(trace.rank, name, copies.count, copies.bytes, seconds(over_time.total_ns), over_time.mean,
                  over_time.p25, over_time.p50, over_time.p75, highest);
    }
    if (by_name.empty() && !all.work.empty()) summary.note(trace.rank, " has no copies or fills");
    if (without_figure > 0)
      summary.note(trace.rank,
                   ": " + std::to_string(without_figure) +
                       " copies or fills have neither bandwidth nor bytes and are left out of the "
                       "bandwidth");
  }
  return {series.take(), summary.take()};
}

namespace {

/// Integers of one argument, looked up by row.
class IntegerArgument {
 public:
  IntegerArgument(const trace::Columns& columns, std::string_view name) : column_(columns.argument(name)) {}
  std::optional<std::int64_t> at(trace::Row row) const {
    const auto value = integer_at(column_, row);
    constexpr std::int64_t kMax = std::int64_t{1} << 53;  // nobody has more, and sums must not overflow
    return value ? std::optional(std::clamp(*value, -kMax, kMax)) : std::nullopt;
  }

 private:
  const trace::ArgumentColumn* column_;
};

struct MemoryOfDevice {
  std::int64_t events = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t net = 0;
  std::int64_t peak = -1;
  trace::Row peak_row = 0;
  double peak_reserved = kNoFigure;
};

/// By PyTorch's number of the kind of device, and the device.
using MemoryOfDevices = std::map<std::pair<std::int64_t, std::int64_t>, MemoryOfDevice>;

MemoryOfDevices memory_of(const trace::Trace& trace, const Selection& selection) {
  const trace::Columns& columns = trace.columns();
  const IntegerArgument bytes(columns, "Bytes");
  const IntegerArgument allocated(columns, "Total Allocated");
  const IntegerArgument reserved(columns, "Total Reserved");
  const IntegerArgument type(columns, "Device Type");
  const IntegerArgument device(columns, "Device Id");
  const trace::Names::Id memory = columns.names.find("[memory]");
  std::vector<trace::Row> rows;
  for (trace::Row row = 0; row < static_cast<trace::Row>(columns.size()); ++row) {
    if (columns.name[row] == memory && selection.has(row)) rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](trace::Row a, trace::Row b) { return columns.start_ns[a] < columns.start_ns[b]; });
  MemoryOfDevices devices;
  for (const trace::Row row : rows) {
    const auto total = allocated.at(row);
    if (!total) continue;
    MemoryOfDevice& of = devices[{type.at(row).value_or(0), device.at(row).value_or(-1)}];
    if (of.events++ == 0) of.first = *total;
    of.last = *total;
    of.net += bytes.at(row).value_or(0);
    if (*total > of.peak) {
      of.peak = *total;
      of.peak_row = row;
    }
    const auto held = reserved.at(row);
    if (held && !(of.peak_reserved >= static_cast<double>(*held)))
      of.peak_reserved = static_cast<double>(*held);
  }
  return devices;
}

}  // namespace

Table memory_use(std::span<const trace::Trace> traces, const Scope& scope) {
  Rows<MemoryUseColumns> rows;
  for (const trace::Trace& trace : traces) {
    const trace::Columns& columns = trace.columns();
    const Selection selection(trace, scope);
    rows.take_notes(selection.notes());
    const MemoryOfDevices devices = memory_of(trace, selection);
    if (devices.empty()) rows.note(trace.rank, " has no memory events with totals (profile_memory=True)");
    const Calls calls(trace);
    for (const auto& [device, of] : devices) {
      const std::int32_t step = trace.steps.step_of(of.peak_row);
      const std::int32_t call = calls.at(columns.lane[of.peak_row], columns.start_ns[of.peak_row]);
      rows.add(trace.rank, device.first, device.second, of.events, of.peak, columns.start_ns[of.peak_row],
               step < 0 ? -1 : trace.steps.all()[static_cast<std::size_t>(step)].number,
               call == Calls::kNone ? std::string_view()
                                    : columns.name_of(calls.row(static_cast<std::size_t>(call))),
               of.peak_reserved, of.first, of.last, of.net);
    }
  }
  return rows.take();
}

}  // namespace headrace::analysis::device
