// Rows and names of a certain sort, each looked at once: names by their number, rows by the callers above
// them.
#pragma once

#include <vector>

#include "headrace/trace/columns.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// Finds callers along the call stack; what it passes on the way is remembered, so that all rows together
/// cost about one step each. `Wanted` takes a row and tells whether it is one of the sort.
template <class Wanted>
class Callers {
 public:
  Callers(const trace::Trace& trace, Wanted wanted)
      : trace_(trace), wanted_(wanted), known_(trace.columns().size(), false), found_(known_.size()) {}

  /// The outermost row of the sort among `row` and its callers; kNoRow if there is none.
  trace::Row outermost(trace::Row row) {
    return find(row, [&](trace::Row above, trace::Row at) {
      return above == trace::kNoRow && wanted_(at) ? at : above;
    });
  }

  /// The innermost one. Ask one object for one of the two only.
  trace::Row innermost(trace::Row row) {
    return find(row, [&](trace::Row above, trace::Row at) { return wanted_(at) ? at : above; });
  }

 private:
  template <class Choose>
  trace::Row find(trace::Row row, Choose choose) {
    way_.clear();
    trace::Row above = row;
    while (above != trace::kNoRow && !known_[above]) {
      way_.push_back(above);
      above = trace_.calls.parent_of(above);
    }
    trace::Row found = above == trace::kNoRow ? trace::kNoRow : found_[above];
    while (!way_.empty()) {
      const trace::Row at = way_.back();
      way_.pop_back();
      found = found_[at] = choose(found, at);
      known_[at] = true;
    }
    return found;
  }

  const trace::Trace& trace_;
  Wanted wanted_;
  std::vector<bool> known_;
  std::vector<trace::Row> found_;
  std::vector<trace::Row> way_;
};

/// One entry per name of the trace: whether it is one that is looked for. `Matches` takes a std::string_view.
template <class Matches>
std::vector<bool> names_that(const trace::Columns& columns, Matches matches) {
  std::vector<bool> result(columns.names.size());
  for (trace::Names::Id id = 0; id < columns.names.size(); ++id) result[id] = matches(columns.names[id]);
  return result;
}

}  // namespace headrace::analysis::device
