// Floating-point operations and bytes of an operator, from its shapes.
#pragma once

#include <optional>
#include <string_view>

namespace headrace::analysis::device {

/// Least work of a call, whatever kernel carries it out.
struct OperatorCost {
  std::string_view kind;
  double flops = 0;
  double bytes = 0;
};

/// Whether there is a formula for operators of this name.
bool has_cost(std::string_view name) noexcept;

/// Arguments as PyTorch's profiler writes them: "Input Dims" ([[8, 16], [16, 4]]), "Input type" (["float",
/// "float"]), "Concrete Inputs" (["", "", "[1, 1]"]). Nothing where they do not say enough.
///
///     gemm            2 M N K for each of a batch
///     attention       4 B H Sq Sk D; half of it if it is causal; backward 2.5 times as many
///     convolution     2 x elements of the output x channels of a group x elements of the kernel; backward once for each
///                     gradient that is asked for
///     normalisation   5 an element (mean, variance, difference, product, sum; softmax alike), backward 10
///     elementwise     1 an element of the output, a copy none
///
/// Bytes are those of all tensors that are read and of what is written, each once.
std::optional<OperatorCost> cost_of(std::string_view name, std::string_view dims, std::string_view types,
                                    std::string_view concrete);

}  // namespace headrace::analysis::device
