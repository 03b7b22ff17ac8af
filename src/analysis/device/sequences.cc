#include "headrace/analysis/device/operators.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/device/callers.h"
#include "analysis/device/order.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

using trace::Row;

/// A call on the host and the device work that counts as its own, in order.
struct CallWithWork {
  trace::Row call = 0;
  std::vector<Work> work;
};

/// Puts `work` (each piece with the row of its call) together by call; work keeps its order.
std::vector<CallWithWork> by_call(std::vector<std::pair<trace::Row, Work>> work) {
  std::stable_sort(work.begin(), work.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<CallWithWork> calls;
  for (const auto& [call, each] : work) {
    if (calls.empty() || calls.back().call != call) calls.push_back({call, {}});
    calls.back().work.push_back(each);
  }
  return calls;
}

/// Calls of one name that started work of the same names.
struct CallGroup {
  trace::Names::Id name = 0;
  std::vector<trace::Names::Id> sequence;
  /// Indices of the calls.
  std::vector<std::size_t> calls;
};

/// The largest group first, then by names.
std::vector<CallGroup> group(const trace::Columns& columns, std::span<const CallWithWork> calls) {
  std::vector<CallGroup> single;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    CallGroup one{columns.name[calls[i].call], {}, {i}};
    for (const Work& work : calls[i].work) one.sequence.push_back(columns.name[work.row]);
    single.push_back(std::move(one));
  }
  std::stable_sort(single.begin(), single.end(), [](const CallGroup& a, const CallGroup& b) {
    return std::tie(a.name, a.sequence) < std::tie(b.name, b.sequence);
  });
  std::vector<CallGroup> groups;
  for (CallGroup& one : single) {
    if (!groups.empty() && groups.back().name == one.name && groups.back().sequence == one.sequence) {
      groups.back().calls.push_back(one.calls.front());
    } else {
      groups.push_back(std::move(one));
    }
  }
  std::sort(groups.begin(), groups.end(), [&](const CallGroup& a, const CallGroup& b) {
    if (a.calls.size() != b.calls.size()) return a.calls.size() > b.calls.size();
    if (a.name != b.name) return columns.names[a.name] < columns.names[b.name];
    return std::lexicographical_compare(
        a.sequence.begin(), a.sequence.end(), b.sequence.begin(), b.sequence.end(),
        [&](auto left, auto right) { return columns.names[left] < columns.names[right]; });
  });
  return groups;
}

std::string sequence_text(const trace::Columns& columns, const CallGroup& group, std::string_view between) {
  return joined(group.sequence, between, [&](trace::Names::Id name) { return columns.names[name]; });
}

}  // namespace

Table sequences(std::span<const trace::Trace> traces, const SequencesOptions& options) {
  Rows<SequencesColumns> rows;
  for (const trace::Trace& trace : traces) {
    const trace::Columns& columns = trace.columns();
    const DeviceWork all = device_work(trace, options.scope);
    rows.take_notes(all.notes);
    const std::vector<bool> wanted = names_that(columns, [&](std::string_view name) {
      return name.find(options.operator_name) != std::string_view::npos;
    });
    Callers callers(trace, [&](Row row) { return wanted[columns.name[row]]; });
    std::vector<std::pair<Row, Work>> owned;
    for (const Work& each : all.work) {
      const Row launch = trace.correlation.launch_of(each.row);
      const Row call = launch == trace::kNoRow ? trace::kNoRow : callers.outermost(launch);
      if (call != trace::kNoRow) owned.emplace_back(call, each);
    }
    std::vector<CallWithWork> calls = by_call(std::move(owned));
    std::erase_if(calls, [&](const CallWithWork& call) { return call.work.size() < options.shortest; });
    if (calls.empty())
      rows.note(trace.rank, " has no call of '" + options.operator_name + "' that started " +
                                std::to_string(options.shortest) + " pieces of device work or more");
    std::size_t shown = 0;
    for (const CallGroup& each : group(columns, calls)) {
      if (options.most != 0 && shown++ == options.most) break;
      std::int64_t kernel_ns = 0;
      std::int64_t host_ns = 0;
      for (const std::size_t call : each.calls) {
        for (const Work& work : calls[call].work) kernel_ns += work.end_ns - work.start_ns;
        host_ns += columns.duration_ns[calls[call].call];
      }
      rows.add(trace.rank, std::string(columns.names[each.name]) + "|" + sequence_text(columns, each, "|"),
               each.sequence.size(), each.calls.size(), seconds(kernel_ns), seconds(host_ns));
    }
  }
  return rows.take();
}

Table operator_sequences(std::span<const trace::Trace> traces, const OperatorSequencesOptions& options) {
  Rows<OperatorSequencesColumns> rows;
  for (const trace::Trace& trace : traces) {
    const trace::Columns& columns = trace.columns();
    const DeviceWork all = device_work(trace, options.scope);
    rows.take_notes(all.notes);
    const std::vector<bool> wanted =
        names_that(columns, [&](std::string_view name) { return name.starts_with(options.prefix); });
    Callers callers(trace, [&](Row row) { return wanted[columns.name[row]]; });
    std::vector<std::pair<Row, Work>> owned;
    for (const Work& each : all.work) {
      const Row launch = trace.correlation.launch_of(each.row);
      const Row call = launch == trace::kNoRow ? trace::kNoRow : callers.innermost(launch);
      if (call != trace::kNoRow) owned.emplace_back(call, each);
    }
    if (owned.empty() && !all.work.empty())
      rows.note(trace.rank,
                ": no work was launched within an operator whose name begins with '" + options.prefix + "'");
    const auto launched_ns = [&](const Work& work) {
      return columns.start_ns[trace.correlation.launch_of(work.row)];
    };
    std::stable_sort(owned.begin(), owned.end(), [&](const auto& a, const auto& b) {
      return launched_ns(a.second) < launched_ns(b.second);
    });
    const std::vector<CallWithWork> calls = by_call(std::move(owned));
    for (const CallGroup& each : group(columns, calls)) {
      std::int64_t operator_ns = 0;
      std::int64_t launch_ns = 0;
      for (const std::size_t call : each.calls) {
        const Work& first = calls[call].work.front();
        operator_ns += launched_ns(first) - columns.start_ns[calls[call].call];
        launch_ns += first.start_ns - launched_ns(first);
      }
      const auto count = static_cast<double>(each.calls.size());
      rows.add(trace.rank, columns.names[each.name], sequence_text(columns, each, " -> "), each.calls.size(),
               seconds(operator_ns) / count, seconds(launch_ns) / count);
    }
  }
  return rows.take();
}

}  // namespace headrace::analysis::device
