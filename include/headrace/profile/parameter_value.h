// The value of a loader's parameter, in the parameter's own type.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace headrace::profile {

/// A number of workers is an integer, an order a bool, a way to start a text; monostate: there is no value.
/// JSON and Python get the same types, so that `Loader(workers=advice.to)` works.
using ParameterValue = std::variant<std::monostate, bool, std::int64_t, std::string>;

/// As it is written in Python: "True", "4", "process"; "" if there is no value.
std::string as_written(const ParameterValue& value);

}  // namespace headrace::profile
