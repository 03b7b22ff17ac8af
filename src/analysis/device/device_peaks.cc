#include "analysis/device/device_peaks.h"

#include <array>

namespace headrace::analysis::device {
namespace {

struct NamedPeaks {
  std::string_view part;  ///< of the device's name; the first that is in it counts
  DevicePeaks peaks;
};

/// From the data sheets of NVIDIA (V100, T4, A10, A100, L4, L40S, H100, H200, B200, GeForce) and AMD
/// (Instinct MI210 to MI355X), without sparsity. A device of MI250 and MI250X is one of its two dies.
constexpr std::array<NamedPeaks, 20> kDevices = {{
    {"B200", {2250, 4500, 1125, 75, 37, 8000}},
    {"H200", {989.4, 1978.9, 494.7, 66.9, 66.9, 4800}},
    {"H100 PCIe", {756, 1513, 378, 51.2, 51.2, 2000}},
    {"H100 NVL", {835, 1671, 417.5, 60, 60, 3900}},
    {"H100", {989.4, 1978.9, 494.7, 66.9, 66.9, 3350}},
    {"A100-SXM4-40GB", {312, 0, 156, 19.5, 19.5, 1555}},
    {"A100-PCIE-40GB", {312, 0, 156, 19.5, 19.5, 1555}},
    {"A100", {312, 0, 156, 19.5, 19.5, 2039}},
    {"L40S", {362, 733, 183, 91.6, 1.4, 864}},
    {"L4", {121, 242, 60, 30.3, 0.5, 300}},
    {"A10", {125, 0, 62.5, 31.2, 1, 600}},
    {"V100", {125, 0, 15.7, 15.7, 7.8, 900}},
    {"T4", {65, 0, 8.1, 8.1, 0.25, 320}},
    {"RTX 4090", {165.2, 330.3, 82.6, 82.6, 1.3, 1008}},
    {"RTX 3090", {71, 0, 35.6, 35.6, 0.6, 936}},
    {"MI355X", {2516, 5033, 157.3, 157.3, 78.6, 8000}},
    {"MI325X", {1307.4, 2614.9, 653.7, 163.4, 163.4, 6000}},
    {"MI300X", {1307.4, 2614.9, 653.7, 163.4, 163.4, 5300}},
    {"MI250", {191.5, 0, 47.9, 23.9, 47.9, 1638}},
    {"MI210", {181, 0, 45.3, 22.6, 45.3, 1638}},
}};

}  // namespace

std::optional<DevicePeaks> peaks_of(std::string_view device) noexcept {
  for (const auto& [part, peaks] : kDevices) {
    if (device.find(part) != std::string_view::npos) return peaks;
  }
  return std::nullopt;
}

double peak_flops(const DevicePeaks& peaks, std::string_view type, bool is_product) noexcept {
  constexpr double kTera = 1e12;
  if (type.find("Float8") != std::string_view::npos) return kTera * peaks.float8_tflops;
  const bool is_half = type == "c10::BFloat16" || type == "c10::Half";
  if (type == "double") return kTera * peaks.double_tflops;
  if (is_half && is_product) return kTera * peaks.half_tflops;
  return kTera * (is_product ? peaks.tf32_tflops : peaks.float_tflops);
}

}  // namespace headrace::analysis::device
