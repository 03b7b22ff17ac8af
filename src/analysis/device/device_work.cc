#include "headrace/analysis/device/device_work.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace headrace::analysis::device {
namespace {

/// The number at the end of "stream 7" or "GPU 0".
std::int64_t trailing_number(std::string_view text) noexcept {
  const std::size_t before = text.find_last_not_of("0123456789");
  const std::string_view digits = before == std::string_view::npos ? text : text.substr(before + 1);
  std::int64_t number = trace::kAbsent;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

/// One entry per lane: whether its events are of several devices, by their argument.
std::vector<bool> lanes_of_several_devices(const trace::Columns& columns) {
  std::vector<bool> several(columns.lanes.size(), false);
  const trace::ArgumentColumn* device = columns.argument("device");
  if (device == nullptr) return several;
  constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();
  std::vector<std::int64_t> first(columns.lanes.size(), kUnknown);
  for (std::size_t i = 0; i < device->rows.size(); ++i) {
    const std::uint32_t lane = columns.lane[device->rows[i]];
    if (first[lane] == kUnknown) first[lane] = device->integers[i];
    if (first[lane] != device->integers[i]) several[lane] = true;
  }
  return several;
}

/// Numbers the streams as they come up. Kineto has one lane per stream, so nearly every row is answered by
/// what was answered for its lane before.
class StreamNumbering {
 public:
  explicit StreamNumbering(const trace::Columns& columns)
      : columns_(columns), several_devices_(lanes_of_several_devices(columns)), last_(columns.lanes.size()) {}

  std::uint32_t number_of(trace::Row row) {
    Last& last = last_[columns_.lane[row]];
    const bool same_device = !several_devices_[columns_.lane[row]];
    if (last.known && same_device && last.argument == columns_.stream[row]) return last.number;
    const Stream stream = stream_of(columns_, row);
    const auto next = static_cast<std::uint32_t>(numbers_.size());
    last = {true, columns_.stream[row], numbers_.try_emplace(stream, next).first->second};
    return last.number;
  }

  /// Puts `work` and `streams` into ascending numbers.
  void finish(DeviceWork& into) const {
    std::vector<std::uint32_t> rank_of(numbers_.size());
    for (const auto& [stream, number] : numbers_) {
      rank_of[number] = static_cast<std::uint32_t>(into.streams.size());
      into.streams.push_back(stream);
    }
    for (Work& work : into.work) work.stream = rank_of[work.stream];
  }

 private:
  struct Last {
    bool known = false;
    std::int64_t argument = trace::kAbsent;
    std::uint32_t number = 0;
  };

  const trace::Columns& columns_;
  std::vector<bool> several_devices_;
  std::vector<Last> last_;
  std::map<Stream, std::uint32_t> numbers_;
};

}  // namespace

Stream stream_of(const trace::Columns& columns, trace::Row row) {
  const trace::Lane& lane = columns.lanes[columns.lane[row]];
  Stream stream{trace::kAbsent, columns.stream[row]};
  stream.device = integer_at(columns.argument("device"), row).value_or(trace::kAbsent);
  if (stream.device == trace::kAbsent) stream.device = lane.pid;
  if (stream.device == trace::kAbsent) stream.device = trailing_number(lane.process);
  if (stream.stream == trace::kAbsent) stream.stream = lane.tid;
  if (stream.stream == trace::kAbsent) stream.stream = trailing_number(lane.thread);
  return stream;
}

DeviceWork device_work(const trace::Trace& trace, const Scope& scope) {
  const trace::Columns& columns = trace.columns();
  const Selection selection(trace, scope);
  DeviceWork result;
  result.notes = selection.notes();

  StreamNumbering streams(columns);
  // A trace has a million rows and a few hundred kernels: each name is looked at once.
  constexpr auto kUnknown = static_cast<std::uint8_t>(kKernelKinds);
  std::vector<std::uint8_t> kind_of_name(columns.names.size(), kUnknown);
  result.work.reserve(trace.device_rows.size());
  for (const trace::Row row : trace.device_rows) {
    if (!selection.has(row)) continue;
    KernelKind kind = kind_of_work(trace.kinds[row], {});
    if (trace.kinds[row] == trace::EventKind::kernel) {
      std::uint8_t& known = kind_of_name[columns.name[row]];
      if (known == kUnknown) known = static_cast<std::uint8_t>(kind_of_kernel(columns.name_of(row)));
      kind = static_cast<KernelKind>(known);
    }
    result.work.push_back({columns.start_ns[row], columns.end_ns(row), row, streams.number_of(row), kind});
  }
  streams.finish(result);
  if (result.work.empty())
    result.notes.push_back("rank " + std::to_string(trace.rank) + " has no work on a device");
  return result;
}

std::vector<WorkOf> DeviceWork::by_device(bool per_device) && {
  std::vector<WorkOf> result;
  if (work.empty()) return result;
  if (!per_device) {
    result.push_back({{}, std::move(work)});
    return result;
  }
  std::vector<std::size_t> place(streams.size());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (result.empty() || result.back().of.device != streams[i].device)
      result.push_back({{streams[i].device, trace::kAbsent}, {}});
    place[i] = result.size() - 1;
  }
  for (const Work& each : work) result[place[each.stream]].work.push_back(each);
  work = {};
  return result;
}

std::vector<WorkOf> DeviceWork::by_stream() && {
  std::vector<WorkOf> result;
  result.reserve(streams.size());
  for (const Stream& stream : streams) result.push_back({stream, {}});
  if (streams.size() == 1) {
    result.front().work = std::move(work);
    return result;
  }
  std::vector<std::size_t> sizes(streams.size());
  for (const Work& each : work) ++sizes[each.stream];
  for (std::size_t i = 0; i < sizes.size(); ++i) result[i].work.reserve(sizes[i]);
  for (const Work& each : work) result[each.stream].work.push_back(each);
  work = {};
  return result;
}

std::size_t most_works(std::span<const trace::Trace> traces) noexcept {
  std::size_t works = 0;
  for (const trace::Trace& trace : traces) works += trace.device_rows.size();
  return works;
}

Intervals busy(std::span<const Work> work) {
  Intervals result;
  for (const Work& each : work) append(result, {each.start_ns, each.end_ns});
  return result;
}

Intervals busy(std::span<const Work> work, KernelKind kind) {
  Intervals result;
  for (const Work& each : work) {
    if (each.kind == kind) append(result, {each.start_ns, each.end_ns});
  }
  return result;
}

std::int64_t span_ns(std::span<const Work> work) noexcept {
  if (work.empty()) return 0;
  std::int64_t end_ns = work.front().end_ns;
  for (const Work& each : work) end_ns = std::max(end_ns, each.end_ns);
  return end_ns - work.front().start_ns;
}

}  // namespace headrace::analysis::device
