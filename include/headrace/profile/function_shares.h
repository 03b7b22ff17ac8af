// The functions of an operator's record, as text: "name<tab>share<newline>" each.
#pragma once

#include <string_view>
#include <vector>

#include "headrace/profile/layout.h"
#include "headrace/profile/profile.h"

namespace headrace::profile {

/// Cut at a line to what fits. By one thread at a time; readers see old words or new ones.
void store_functions(OperatorRecord& record, std::string_view lines) noexcept;

/// Lines that are not of that form, and shares out of 0 to 1, are left out.
std::vector<FunctionShare> functions_of(const OperatorRecord& record);

}  // namespace headrace::profile
