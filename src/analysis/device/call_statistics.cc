#include "analysis/device/call_statistics.h"

#include <utility>

namespace headrace::analysis::device {

void CallColumns::add(const CallStatistics& calls, std::int64_t whole_ns) {
  calls_.push_back(calls.calls());
  total_s_.push_back(seconds(calls.total_ns()));
  total_pct_.push_back(percent(calls.total_ns(), whole_ns));
  mean_s_.push_back(calls.mean_s());
  std_s_.push_back(calls.std_s());
  min_s_.push_back(seconds(calls.shortest_ns()));
  max_s_.push_back(seconds(calls.longest_ns()));
}

void CallColumns::put_into(Table& table) {
  table.add("calls", std::move(calls_))
      .add("total_s", std::move(total_s_))
      .add("total_pct", std::move(total_pct_))
      .add("mean_s", std::move(mean_s_))
      .add("std_s", std::move(std_s_))
      .add("min_s", std::move(min_s_))
      .add("max_s", std::move(max_s_));
}

}  // namespace headrace::analysis::device
