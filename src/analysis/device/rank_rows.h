// The columns that say whom a row is about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/analysis/table.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// `rank`, and `device` behind it where rows are per device.
class RankRows {
 public:
  explicit RankRows(bool per_device) : per_device_(per_device) {}

  void add(std::int64_t rank, std::int64_t device) {
    ranks_.push_back(rank);
    devices_.push_back(device);
  }

  /// The first columns of `table`; leaves this empty.
  void put_into(Table& table) {
    table.add("rank", std::move(ranks_));
    if (per_device_) table.add("device", std::move(devices_));
  }

 private:
  bool per_device_;
  Integers ranks_;
  Integers devices_;
};

/// Most rows that a table with one for each piece of device work may have. Columns that are made this long
/// ahead are not copied while they grow; what is not written to costs nothing.
inline std::size_t most_works(std::span<const trace::Trace> traces) {
  std::size_t works = 0;
  for (const trace::Trace& trace : traces) works += trace.device_rows.size();
  return works;
}

/// Appends notes to a table's.
inline void take_notes(Table& table, const std::vector<std::string>& notes) {
  table.notes.insert(table.notes.end(), notes.begin(), notes.end());
}

}  // namespace headrace::analysis::device
