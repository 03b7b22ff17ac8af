#include "headrace/analysis/device/memory_use.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/device/calls.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
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
