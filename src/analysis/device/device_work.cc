#include "headrace/analysis/device/device_work.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace headrace::analysis::device {
bool last_step_is_cut_off(const trace::Trace& trace) {
  const std::size_t steps = trace.steps.all().size();
  if (steps < 2) return false;
  if (trace.file.notes.cut) return true;
  std::size_t last = 0;
  std::size_t before = 0;
  for (const trace::Row row : trace.device_rows) {
    const std::int32_t step = trace.steps.step_of(row);
    if (step == static_cast<std::int32_t>(steps) - 1) ++last;
    if (step == static_cast<std::int32_t>(steps) - 2) ++before;
  }
  return 5 * last < 4 * before;
}

std::int32_t step_of(const trace::Trace& trace, trace::Row row) noexcept {
  const std::int32_t by_launch = trace.steps.step_of(row);
  const bool launched = trace.correlation.launch_of(row) != trace::kNoRow;
  if (by_launch != trace::Steps::kNone || launched || !trace::is_on_device(trace.kinds[row]))
    return by_launch;
  const std::vector<trace::Step>& steps = trace.steps.all();
  const std::int64_t began_ns = trace.columns().start_ns[row];
  const auto behind =
      std::upper_bound(steps.begin(), steps.end(), began_ns,
                       [](std::int64_t at, const trace::Step& step) { return at < step.start_ns; });
  if (behind == steps.begin() || began_ns >= std::prev(behind)->end_ns) return trace::Steps::kNone;
  return static_cast<std::int32_t>(behind - steps.begin() - 1);
}

Selection::Selection(const trace::Trace& trace, const Scope& scope)
    : trace_(&trace), begin_ns_(scope.begin_ns), end_ns_(scope.end_ns), any_step_(scope.steps.empty()) {
  const std::string rank = "rank " + std::to_string(trace.rank);
  const std::vector<trace::Step>& steps = trace.steps.all();
  wanted_.reserve(steps.size());
  // Sorted, because all of a long run's steps may be asked for.
  std::vector<std::int64_t> asked = scope.steps;
  std::sort(asked.begin(), asked.end());
  std::vector<std::int64_t> there;
  there.reserve(steps.size());
  for (const trace::Step& step : steps) {
    wanted_.push_back(std::binary_search(asked.begin(), asked.end(), step.number));
    there.push_back(step.number);
  }
  std::sort(there.begin(), there.end());
  for (const std::int64_t number : scope.steps) {
    if (!std::binary_search(there.begin(), there.end(), number))
      notes_.push_back(rank + " has no step " + std::to_string(number));
  }
  // A step that is asked for by its number is wanted as it is.
  if (scope.keep_cut_off_step || !any_step_ || !last_step_is_cut_off(trace)) return;
  if (steps.back().start_ns >= end_ns_) return;
  end_ns_ = steps.back().start_ns;
  notes_.push_back(rank + ": the last step (ProfilerStep#" + std::to_string(steps.back().number) +
                   ") is cut off and left out");
}

bool Selection::is_in_a_step(trace::Row row) const noexcept {
  const std::int32_t step = step_of(*trace_, row);
  return step != trace::Steps::kNone && wanted_[static_cast<std::size_t>(step)];
}

namespace {

// Libraries, and what they, the frameworks' own kernels and XLA call collectives.
constexpr std::array<std::string_view, 29> kCommunication = {"nccl",
                                                             "rccl",
                                                             "hccl",
                                                             "hcom_",
                                                             "oneccl",
                                                             "msccl",
                                                             "nvshmem",
                                                             "deep_ep",
                                                             "ep::internode",
                                                             "ep::intranode",
                                                             "symm_mem",
                                                             "multimem",
                                                             "userbuffers",
                                                             "cross_device_reduce",
                                                             "allreduce",
                                                             "all_reduce",
                                                             "allgather",
                                                             "all_gather",
                                                             "reducescatter",
                                                             "reduce_scatter",
                                                             "all_to_all",
                                                             "all-reduce",
                                                             "all-gather",
                                                             "reduce-scatter",
                                                             "all-to-all",
                                                             "collective-permute",
                                                             "collective-broadcast",
                                                             "async-collective",
                                                             "ragged-all-to-all"};
constexpr std::array<std::string_view, 5> kCommunicationFirst = {"collective_subgraph_execution", "send.",
                                                                 "recv.", "send-done", "recv-done"};
/// TorchInductor names its kernels by the operators that they fuse: a copy behind a collective computes.
constexpr std::string_view kFused = "triton_";
constexpr std::array<std::string_view, 7> kMemory = {
    "memcpy", "memset", "hipmemcpy", "hipmemset", "__amd_rocclr_copybuffer", "__amd_rocclr_fillbuffer",
    "dma"};
// Waits, and what the runtime of an MTIA device records on the device's rows.
constexpr std::array<std::string_view, 11> kOther = {
    "event_wait",  "event sync", "stream sync", "context sync", "stream wait event", "event_record",
    "runfunction", "job_exe",    "packet",      "pe_exe",       "cpum_exe_subgraph"};

constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// `lower_case` at the beginning of `text`, in any case.
bool begins(std::string_view text, std::string_view lower_case) noexcept {
  return text.size() >= lower_case.size() && std::equal(lower_case.begin(), lower_case.end(), text.begin(),
                                                        [](char a, char b) { return a == lower(b); });
}

bool holds(std::string_view text, std::string_view lower_case) noexcept {
  return std::search(text.begin(), text.end(), lower_case.begin(), lower_case.end(),
                     [](char a, char b) { return lower(a) == b; }) != text.end();
}

}  // namespace

const char* to_string(KernelKind kind) noexcept {
  constexpr std::array kNames = {"computation", "communication", "memory", "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

KernelKind kind_of_kernel(std::string_view name) noexcept {
  const auto at_the_beginning = [&](std::string_view part) { return begins(name, part); };
  if (!begins(name, kFused) && std::any_of(kCommunication.begin(), kCommunication.end(),
                                           [&](std::string_view part) { return holds(name, part); }))
    return KernelKind::communication;
  if (std::any_of(kCommunicationFirst.begin(), kCommunicationFirst.end(), at_the_beginning))
    return KernelKind::communication;
  if (std::any_of(kMemory.begin(), kMemory.end(), at_the_beginning)) return KernelKind::memory;
  if (std::any_of(kOther.begin(), kOther.end(), at_the_beginning)) return KernelKind::other;
  return KernelKind::computation;
}

KernelKind kind_of_work(trace::EventKind kind, std::string_view name) noexcept {
  if (kind == trace::EventKind::memory_copy || kind == trace::EventKind::memory_set)
    return KernelKind::memory;
  if (kind == trace::EventKind::computation) return KernelKind::computation;
  if (kind == trace::EventKind::collective) return KernelKind::communication;
  return kind_of_kernel(name);
}

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
