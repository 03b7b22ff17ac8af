#include "trace/begin_end.h"

#include <algorithm>
#include <vector>

namespace headrace::trace {

std::size_t pair_begin_end(Columns& columns) {
  std::vector<Row> marks;
  for (Row row = 0; row < columns.size(); ++row) {
    if (columns.phase[row] == 'B' || columns.phase[row] == 'E') marks.push_back(row);
  }
  std::stable_sort(marks.begin(), marks.end(),
                   [&](Row a, Row b) { return columns.start_ns[a] < columns.start_ns[b]; });
  std::vector<std::vector<Row>> open(columns.lanes.size());
  std::size_t unpaired = 0;
  for (const Row row : marks) {
    std::vector<Row>& begun = open[columns.lane[row]];
    if (columns.phase[row] == 'B') {
      begun.push_back(row);
    } else if (begun.empty()) {
      ++unpaired;
    } else {
      columns.phase[begun.back()] = 'X';
      columns.duration_ns[begun.back()] = columns.start_ns[row] - columns.start_ns[begun.back()];
      begun.pop_back();
    }
  }
  for (const std::vector<Row>& begun : open) unpaired += begun.size();
  return unpaired;
}

}  // namespace headrace::trace
