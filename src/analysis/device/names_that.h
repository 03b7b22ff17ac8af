// Names are looked at once each, rows by the number of their name.
#pragma once

#include <vector>

#include "headrace/trace/columns.h"

namespace headrace::analysis::device {

/// One entry per name of the trace: whether it is one that is looked for. `Matches` takes a std::string_view.
template <class Matches>
std::vector<bool> names_that(const trace::Columns& columns, Matches matches) {
  std::vector<bool> result(columns.names.size());
  for (trace::Names::Id id = 0; id < columns.names.size(); ++id) result[id] = matches(columns.names[id]);
  return result;
}

}  // namespace headrace::analysis::device
