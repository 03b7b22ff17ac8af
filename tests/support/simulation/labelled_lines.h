// Classes of pipelines with the verdict that each must get; the numbers, names and depths are drawn.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "support/simulation/line.h"

namespace headrace::simulation {

struct Labelled {
  Line line;
  std::set<std::string> kinds;  ///< any of these
  std::string op;               ///< "" if none is expected
  std::string cause;            ///< "" if none is expected
};

struct LineClass {
  const char* name;
  Labelled (*draw)(Random& random);
};

const std::vector<LineClass>& line_classes();

}  // namespace headrace::simulation
