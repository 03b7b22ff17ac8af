// Names of kernels that fit into a line.
#pragma once

#include <string>
#include <string_view>

namespace headrace::analysis::device {

/// A C++ function's name without its template arguments, parameters and return type:
/// "void at::native::gemm_kernel<float, 4>(float*)" becomes "at::native::gemm_kernel", and ROCm's "[clone
/// .kd]" goes too. Copies, fills, and names without brackets stay as they are. What follows a bracket that is
/// never closed (names are cut by some profilers) is dropped.
std::string short_name(std::string_view name);

}  // namespace headrace::analysis::device
