// Calls that started the same work.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "headrace/analysis/device/device_work.h"

namespace headrace::analysis::device {

/// A call on the host and the device work that counts as its own, in order.
struct CallWithWork {
  trace::Row call = 0;
  std::vector<Work> work;
};

/// Puts `work` (each piece with the row of its call) together by call; work keeps its order.
inline std::vector<CallWithWork> by_call(std::vector<std::pair<trace::Row, Work>> work) {
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
inline std::vector<CallGroup> group(const trace::Columns& columns, std::span<const CallWithWork> calls) {
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

}  // namespace headrace::analysis::device
