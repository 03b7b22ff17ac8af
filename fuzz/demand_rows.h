// What must hold of the rows of any trace that a fuzz target read.
#pragma once

#include "demand.h"
#include "headrace/trace/columns.h"

namespace headrace {

inline void demand_rows(const trace::Columns& columns) {
  for (trace::Row row = 0; row < columns.size(); ++row) {
    demand(columns.name[row] < columns.names.size() && columns.category[row] < columns.names.size(),
           "names exist");
    demand(columns.lane[row] < columns.lanes.size(), "lanes exist");
    demand(columns.duration_ns[row] >= 0, "an event ends after it begins");
  }
}

}  // namespace headrace
