#include "headrace/analysis/device/operators.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/device/callers.h"
#include "analysis/device/calls.h"
#include "analysis/device/order.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

using trace::Row;

/// Cost of a call by itself and with what ran inside it.
struct Cost {
  std::int64_t host_total_ns = 0;
  std::int64_t host_self_ns = 0;
  std::int64_t device_total_ns = 0;
  std::int64_t device_self_ns = 0;
  std::int64_t host_bytes = 0;
  std::int64_t host_self_bytes = 0;
  std::int64_t device_bytes = 0;
  std::int64_t device_self_bytes = 0;

  void add(const Cost& other) {
    host_total_ns += other.host_total_ns;
    host_self_ns += other.host_self_ns;
    device_total_ns += other.device_total_ns;
    device_self_ns += other.device_self_ns;
    host_bytes += other.host_bytes;
    host_self_bytes += other.host_self_bytes;
    device_bytes += other.device_bytes;
    device_self_bytes += other.device_self_bytes;
  }
};

/// PyTorch's number of the host among the kinds of devices.
constexpr std::int64_t kHost = 0;

/// Allocations (positive) and frees (negative) go to the call that they happened in.
bool charge_memory(const trace::Trace& trace, const Calls& calls, std::vector<Cost>& costs) {
  const trace::Columns& columns = trace.columns();
  const trace::ArgumentColumn* bytes = columns.argument("Bytes");
  const trace::ArgumentColumn* device = columns.argument("Device Type");
  if (bytes == nullptr || device == nullptr) return false;
  const trace::Names::Id memory = columns.names.find("[memory]");
  bool any = false;
  for (std::size_t i = 0; i < bytes->rows.size(); ++i) {
    const Row row = bytes->rows[i];
    if (columns.name[row] != memory) continue;
    any = true;
    const std::int32_t call = calls.at(columns.lane[row], columns.start_ns[row]);
    if (call == Calls::kNone) continue;
    Cost& cost = costs[static_cast<std::size_t>(call)];
    const bool on_host = integer_at(device, row).value_or(kHost) == kHost;
    constexpr std::int64_t kMax = std::int64_t{1} << 53;  // nobody has more, and sums must not overflow
    (on_host ? cost.host_self_bytes : cost.device_self_bytes) +=
        std::clamp<std::int64_t>(bytes->integers[i], -kMax, kMax);
  }
  return any;
}

std::int32_t operator_around(const trace::Trace& trace, const Calls& calls, Row row) {
  std::int32_t call = calls.around(row);
  while (call != Calls::kNone &&
         trace.kinds[calls.row(static_cast<std::size_t>(call))] == trace::EventKind::runtime) {
    call = calls.parent(static_cast<std::size_t>(call));
  }
  return call;
}

/// Device work goes to the operator around its launch: a runtime call has none of its own.
void charge_device(const trace::Trace& trace, const Calls& calls, std::vector<Cost>& costs) {
  const trace::Columns& columns = trace.columns();
  for (Row row = 0; row < static_cast<Row>(columns.size()); ++row) {
    if (!trace::is_device_work(trace.kinds[row])) continue;
    const Row launch = trace.correlation.launch_of(row);
    if (launch == trace::kNoRow) continue;
    std::int32_t call = operator_around(trace, calls, launch);
    // The thread that launched it may only have carried out what another one asked for.
    for (Row from = trace.calls.handed_over_by(launch); call == Calls::kNone && from != trace::kNoRow;
         from = trace.calls.handed_over_by(from))
      call = operator_around(trace, calls, from);
    if (call != Calls::kNone)
      costs[static_cast<std::size_t>(call)].device_self_ns += columns.duration_ns[row];
  }
}

/// Calls stand behind those that they ran inside: from the back, each is done before it is added to its own.
void add_up(const trace::Columns& columns, const Calls& calls, std::vector<Cost>& costs) {
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (calls.is_part(i)) continue;
    Cost& cost = costs[i];
    cost.host_total_ns = columns.duration_ns[calls.row(i)];
    cost.host_self_ns += cost.host_total_ns - calls.overlapped_ns(i);
    const std::int32_t parent = calls.parent(i);
    if (parent != Calls::kNone) costs[static_cast<std::size_t>(parent)].host_self_ns -= cost.host_total_ns;
  }
  for (std::size_t i = costs.size(); i-- > 0;) {
    if (calls.is_part(i)) continue;
    Cost& cost = costs[i];
    cost.device_total_ns += cost.device_self_ns;
    cost.host_bytes += cost.host_self_bytes;
    cost.device_bytes += cost.device_self_bytes;
    const std::int32_t parent = calls.parent(i);
    if (parent == Calls::kNone) continue;
    Cost& around = costs[static_cast<std::size_t>(parent)];
    around.device_total_ns += cost.device_total_ns;
    around.host_bytes += cost.host_bytes;
    around.device_bytes += cost.device_bytes;
  }
}

/// The key of a row of the answer.
struct Key {
  trace::Names::Id name = 0;
  trace::Names::Id shapes = 0;
  std::vector<trace::Names::Id> stack;

  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    std::size_t hash = (std::size_t{key.name} << 32 | key.shapes) * 0x9E3779B97F4A7C15U;
    for (const trace::Names::Id frame : key.stack) hash = (hash ^ frame) * 0x9E3779B97F4A7C15U;
    return hash ^ hash >> 29;
  }
};

struct OperatorGroup {
  Key key;
  std::int64_t calls = 0;
  Cost cost;
};

/// Steps have one row, whatever their numbers.
constexpr std::string_view kStep = "ProfilerStep#";

/// One trace's calls by their keys, in the order in which the keys came first.
class Groups {
 public:
  Groups(const trace::Trace& trace, const OperatorsOptions& options)
      : trace_(trace),
        options_(options),
        shapes_(trace.columns().argument("Input Dims")),
        frames_(trace, IsFrame{&trace}) {
    const trace::Names& names = trace.columns().names;
    for (trace::Names::Id id = 0; id < names.size(); ++id) {
      if (names[id].starts_with(kStep)) steps_.push_back(id);
    }
  }

  void add(Row row, const Cost& cost) {
    const auto [at, is_new] = places_.try_emplace(key_of(row), groups_.size());
    if (is_new) groups_.push_back({at->first, 0, {}});
    OperatorGroup& group = groups_[at->second];
    ++group.calls;
    group.cost.add(cost);
  }
  std::vector<OperatorGroup> take() { return std::move(groups_); }
  bool any_shapes() const noexcept { return shapes_ != nullptr && !shapes_->rows.empty(); }

 private:
  struct IsFrame {
    const trace::Trace* trace;
    bool operator()(Row row) const { return trace->kinds[row] == trace::EventKind::python; }
  };

  /// The innermost Python function around a call, kNoRow if there is none.
  Row frame_around(Row row) {
    const Row caller = trace_.calls.parent_of(row);
    return caller == trace::kNoRow ? trace::kNoRow : frames_.innermost(caller);
  }

  Key key_of(Row row) {
    const trace::Columns& columns = trace_.columns();
    Key key{columns.name[row], 0, {}};
    if (std::binary_search(steps_.begin(), steps_.end(), key.name)) key.name = steps_.front();
    if (options_.by_input_shapes && shapes_ != nullptr) {
      if (const auto at = shapes_->find(row)) key.shapes = shapes_->texts[*at];
    }
    if (options_.stack_frames == 0) return key;
    for (Row at = frame_around(row); at != trace::kNoRow; at = frame_around(at)) {
      key.stack.push_back(columns.name[at]);
      if (key.stack.size() == options_.stack_frames) break;
    }
    return key;
  }

  const trace::Trace& trace_;
  const OperatorsOptions& options_;
  const trace::ArgumentColumn* shapes_;
  Callers<IsFrame> frames_;
  std::vector<trace::Names::Id> steps_;  ///< the names of steps, ascending
  std::unordered_map<Key, std::size_t, KeyHash> places_;
  std::vector<OperatorGroup> groups_;
};

void add_row(const trace::Columns& columns, std::int64_t rank, const OperatorGroup& group,
             Rows<OperatorsColumns>& rows) {
  const std::string_view name = columns.names[group.key.name];
  const std::string stack = joined(group.key.stack, "; ", [&](auto frame) { return columns.names[frame]; });
  const Cost& cost = group.cost;
  rows.add(rank, name.starts_with(kStep) ? std::string_view("ProfilerStep*") : name,
           columns.names[group.key.shapes], stack, group.calls, seconds(cost.host_total_ns),
           seconds(cost.host_self_ns), seconds(cost.host_total_ns) / static_cast<double>(group.calls),
           seconds(cost.device_total_ns), seconds(cost.device_self_ns), cost.host_bytes, cost.host_self_bytes,
           cost.device_bytes, cost.device_self_bytes);
}

}  // namespace

Table operators(std::span<const trace::Trace> traces, const OperatorsOptions& options) {
  Rows<OperatorsColumns> rows;
  rows.show<"input_shapes">(options.by_input_shapes);
  rows.show<"stack">(options.stack_frames > 0);
  for (const trace::Trace& trace : traces) {
    const trace::Columns& columns = trace.columns();
    const Selection selection(trace, options.scope);
    rows.take_notes(selection.notes());
    const Calls calls(trace);
    if (calls.size() == 0) {
      rows.note(trace.rank, " has no operator of the host");
      continue;
    }
    std::vector<Cost> costs(calls.size());
    charge_device(trace, calls, costs);
    if (!charge_memory(trace, calls, costs))
      rows.note(trace.rank, " has no memory figures (profile_memory=True)");
    add_up(columns, calls, costs);

    Groups groups(trace, options);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!calls.is_part(i) && selection.has(calls.row(i))) groups.add(calls.row(i), costs[i]);
    }
    if (options.by_input_shapes && !groups.any_shapes())
      rows.note(trace.rank, " has no input shapes (record_shapes=True)");
    std::vector<OperatorGroup> found = groups.take();
    sort_descending(
        found, [](const OperatorGroup& each) { return each.cost.host_self_ns + each.cost.device_self_ns; });
    for (const OperatorGroup& group : found) add_row(columns, trace.rank, group, rows);
  }
  return rows.take();
}

}  // namespace headrace::analysis::device
