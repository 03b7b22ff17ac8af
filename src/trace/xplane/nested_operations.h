// The operations of a device that runs one at a time, where some hold others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "trace/event_rows.h"

namespace headrace::trace::xplane {

/// A loop is an operation around those of its body: what counts for it is the time in which none of them
/// runs. So no moment counts twice, and all of it counts.
class NestedOperations {
 public:
  void add(const EventRow& row) { rows_.push_back(row); }

  /// Calls `use` with operations that hold none and with the pieces of the others, each of them longer than
  /// nothing but for operations that are so themselves.
  template <class Use>
  void each_piece(Use&& use) {
    std::stable_sort(rows_.begin(), rows_.end(), [](const EventRow& a, const EventRow& b) {
      return std::tuple(a.start_ns, -a.end_ns) < std::tuple(b.start_ns, -b.end_ns);
    });
    std::vector<Open> open;
    const auto close = [&] {
      const Open& top = open.back();
      EventRow row = top.row;
      row.start_ns = top.from_ns;
      if (!top.holds || row.start_ns < row.end_ns) use(row);
      open.pop_back();
    };
    for (const EventRow& row : rows_) {
      while (!open.empty() && open.back().row.end_ns <= row.start_ns) close();
      if (!open.empty()) {
        Open& around = open.back();
        EventRow before = around.row;
        before.start_ns = around.from_ns;
        before.end_ns = row.start_ns;
        if (before.start_ns < before.end_ns) use(before);
        around.from_ns = row.end_ns > around.from_ns ? row.end_ns : around.from_ns;
        around.holds = true;
      }
      open.push_back({row, row.start_ns, false});
    }
    while (!open.empty()) close();
    rows_.clear();
  }

 private:
  struct Open {
    EventRow row;
    std::int64_t from_ns = 0;  ///< what counts up to here is said
    bool holds = false;
  };

  std::vector<EventRow> rows_;
};

}  // namespace headrace::trace::xplane
