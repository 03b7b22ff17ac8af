// What devices can do at most, by their names.
#pragma once

#include <optional>
#include <string_view>

namespace headrace::analysis::device {

/// Dense figures of the vendor's data sheet; 0: it cannot, or none is given.
struct DevicePeaks {
  double half_tflops = 0;  ///< float16 and bfloat16 with matrix units
  double float8_tflops = 0;
  double tf32_tflops = 0;  ///< matrix units on float32; where there are none, as `float_tflops`
  double float_tflops = 0;
  double double_tflops = 0;
  double memory_gbps = 0;
};

/// By the name in `deviceProperties` ("NVIDIA H100 80GB HBM3"); nothing for others.
std::optional<DevicePeaks> peaks_of(std::string_view device) noexcept;

/// The peak for a type of inputs ("c10::BFloat16", "float"), in operations a second. Products of float32 may
/// run on matrix units, so theirs is what those can do.
double peak_flops(const DevicePeaks& peaks, std::string_view type, bool is_product) noexcept;

}  // namespace headrace::analysis::device
