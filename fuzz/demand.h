// What must hold of whatever a fuzz target read.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace headrace {

/// Ends the program with `what` if it does not hold: a finding.
inline void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

}  // namespace headrace
