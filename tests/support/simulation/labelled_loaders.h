// Classes of DataLoaders with the verdict that each must get; the numbers and names are drawn.
#pragma once

#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "support/simulation/loader.h"

namespace headrace::simulation {

struct LabelledLoader {
  DataLoader loader;
  std::set<std::string> kinds;  ///< any of these
  std::string op;               ///< "" if none is expected
  std::string cause;            ///< "" if none is expected
  /// What the first advice must change; "" where anything may come first, "-" where it must be no parameter.
  std::string parameter = "";
};

struct LoaderClass {
  const char* name;
  LabelledLoader (*draw)(Random& random);
};

const std::vector<LoaderClass>& loader_classes();

inline void PrintTo(const LoaderClass& loader_class, std::ostream* out) { *out << loader_class.name; }

}  // namespace headrace::simulation
