#include "headrace/analysis/device/operators.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/device/callers.h"
#include "analysis/device/operator_cost.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

/// Dense figures of the vendor's data sheet; 0: it cannot, or none is given.
struct DevicePeaks {
  double half_tflops = 0;  ///< float16 and bfloat16 with matrix units
  double float8_tflops = 0;
  double tf32_tflops = 0;  ///< matrix units on float32; where there are none, as `float_tflops`
  double float_tflops = 0;
  double double_tflops = 0;
  double memory_gbps = 0;
};

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

/// By the name in `deviceProperties` ("NVIDIA H100 80GB HBM3"); nothing for others.
std::optional<DevicePeaks> peaks_of(std::string_view device) noexcept {
  for (const auto& [part, peaks] : kDevices) {
    if (device.find(part) != std::string_view::npos) return peaks;
  }
  return std::nullopt;
}

/// The peak for a type of inputs ("c10::BFloat16", "float"), in operations a second. Products of float32 may
/// run on matrix units, so theirs is what those can do.
double peak_flops(const DevicePeaks& peaks, std::string_view type, bool is_product) noexcept {
  constexpr double kTera = 1e12;
  if (type.find("Float8") != std::string_view::npos) return kTera * peaks.float8_tflops;
  const bool is_half = type == "c10::BFloat16" || type == "c10::Half";
  if (type == "double") return kTera * peaks.double_tflops;
  if (is_half && is_product) return kTera * peaks.half_tflops;
  return kTera * (is_product ? peaks.tf32_tflops : peaks.float_tflops);
}

using trace::Row;

constexpr double kGiga = 1e9;
constexpr double kTeraOps = 1e12;

/// "" if the file does not say.
std::string device_name(const trace::TraceFile& file) {
  for (const auto& [key, value] : file.metadata) {
    if (key != "deviceProperties") continue;
    const nlohmann::json properties = nlohmann::json::parse(value, nullptr, false);
    if (!properties.is_array() || properties.empty() || !properties.front().is_object()) continue;
    const auto name = properties.front().find("name");
    if (name != properties.front().end() && name->is_string()) return name->get<std::string>();
  }
  return "";
}

struct HasCost {
  const trace::Trace* trace;
  const std::vector<bool>* known;

  bool operator()(Row row) const {
    return trace->kinds[row] == trace::EventKind::operation && (*known)[trace->columns().name[row]];
  }
};

/// The calls of an operator with the same shapes and types.
struct SameCalls {
  std::int64_t calls = 0;
  std::int64_t device_ns = 0;
  OperatorCost cost;
};

class RankRoofline {
 public:
  RankRoofline(const trace::Trace& trace, const RooflineOptions& options, Rows<RooflineColumns>& rows)
      : trace_(trace), options_(options), rows_(rows), columns_(trace.columns()) {}

  void add() {
    dims_ = columns_.argument("Input Dims");
    types_ = columns_.argument("Input type");
    concrete_ = columns_.argument("Concrete Inputs");
    if (trace_.device_rows.empty()) return rows_.note(trace_.rank, " has no work on a device");
    if (dims_ == nullptr || dims_->rows.empty())
      return rows_.note(trace_.rank, " has no shapes of inputs: record with record_shapes=True");
    charge();
    const std::string name = device_name(trace_.file);
    std::optional<DevicePeaks> peaks = peaks_of(name);
    if (!peaks && !options_.peak_tflops && !options_.peak_gbps)
      rows_.note(trace_.rank,
                 " ran on \"" + name + "\", whose peaks are not known: give peak_tflops and peak_gbps");
    add_rows(peaks.value_or(DevicePeaks{}));
    if (other_ns_ > 0)
      rows_.note(trace_.rank, " has " + std::to_string(seconds(other_ns_)) +
                                  " s of work in operators without a formula, or without their shapes");
  }

 private:
  using Key = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;

  /// Device time to the innermost operator with a formula around each launch; each such operator is one call.
  void charge() {
    const std::vector<bool> known = names_that(columns_, has_cost);
    Callers<HasCost> callers(trace_, HasCost{&trace_, &known});
    std::map<Row, std::int64_t> spent;
    const std::vector<bool> crosses = names_that(columns_, [](std::string_view copy) {
      return copy.find("HtoD") != std::string_view::npos || copy.find("DtoH") != std::string_view::npos ||
             copy.find("HostToDevice") != std::string_view::npos ||
             copy.find("DeviceToHost") != std::string_view::npos;
    });
    for (const Work& work : device_work(trace_, options_.scope).work) {
      if (crosses[columns_.name[work.row]]) continue;
      const Row launch = trace_.correlation.launch_of(work.row);
      const Row caller = launch == trace::kNoRow ? trace::kNoRow : callers.innermost(launch);
      (caller == trace::kNoRow ? other_ns_ : spent[caller]) += work.end_ns - work.start_ns;
    }
    for (const auto& [row, ns] : spent) {
      const Key key{columns_.name_of(row), text_at(columns_, dims_, row), text_at(columns_, types_, row),
                    text_at(columns_, concrete_, row)};
      auto [at, is_new] = same_.try_emplace(key);
      if (is_new) {
        const auto& [name, dims, types, concrete] = key;
        const std::optional<OperatorCost> cost = cost_of(name, dims, types, concrete);
        if (cost) at->second.cost = *cost;
      }
      ++at->second.calls;
      at->second.device_ns += ns;
    }
    std::erase_if(same_, [&](const auto& each) {
      if (!each.second.cost.kind.empty()) return false;
      other_ns_ += each.second.device_ns;
      return true;
    });
  }

  static std::string first_type(std::string_view types) {
    const std::size_t begin = types.find('"');
    const std::size_t end = types.find('"', begin + 1);
    return end == std::string_view::npos ? std::string()
                                         : std::string(types.substr(begin + 1, end - begin - 1));
  }

  void add_rows(const DevicePeaks& peaks) {
    // Calls whose scalars differ but not their costs are one row.
    std::map<std::tuple<std::string, std::string, std::string, double>, SameCalls> merged;
    for (const auto& [key, calls] : same_) {
      const auto& [name, dims, types, concrete] = key;
      SameCalls& into = merged[{std::string(name), std::string(dims), first_type(types), calls.cost.flops}];
      into.calls += calls.calls;
      into.device_ns += calls.device_ns;
      into.cost = calls.cost;
    }
    std::vector<std::pair<decltype(merged)::key_type, SameCalls>> sorted(merged.begin(), merged.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.device_ns > b.second.device_ns; });
    for (const auto& [key, calls] : sorted) {
      const auto& [name, dims, type, flops] = key;
      const bool is_product = calls.cost.kind != "elementwise" && calls.cost.kind != "normalisation";
      const double peak =
          options_.peak_tflops ? *options_.peak_tflops * kTeraOps : peak_flops(peaks, type, is_product);
      const double bandwidth = options_.peak_gbps.value_or(peaks.memory_gbps) * kGiga;
      const double bytes = calls.cost.bytes;
      const double device_s = seconds(calls.device_ns);
      const auto count = static_cast<double>(calls.calls);
      const auto rate = [&](double amount, double unit) {
        return device_s > 0 ? amount * count / device_s / unit : kNoFigure;
      };
      const bool any_peak = peak > 0 && bandwidth > 0;
      const double compute_s = any_peak ? flops / peak : kNoFigure;
      const double memory_s = any_peak ? bytes / bandwidth : kNoFigure;
      const double roofline_s = any_peak ? count * std::max(compute_s, memory_s) : kNoFigure;
      std::string_view bound;
      if (any_peak) bound = compute_s > memory_s ? "compute" : "memory";
      rows_.add(trace_.rank, name, calls.cost.kind, dims, type, calls.calls, device_s, flops / kGiga, bytes,
                rate(flops, kTeraOps), rate(bytes, kGiga), bytes > 0 ? flops / bytes : kNoFigure, bound,
                roofline_s, any_peak && device_s > 0 ? 100 * roofline_s / device_s : kNoFigure);
    }
  }

  const trace::Trace& trace_;
  const RooflineOptions& options_;
  Rows<RooflineColumns>& rows_;
  const trace::Columns& columns_;
  const trace::ArgumentColumn* dims_ = nullptr;
  const trace::ArgumentColumn* types_ = nullptr;
  const trace::ArgumentColumn* concrete_ = nullptr;
  std::map<Key, SameCalls> same_;
  std::int64_t other_ns_ = 0;
};

}  // namespace

Table roofline(std::span<const trace::Trace> traces, const RooflineOptions& options) {
  Rows<RooflineColumns> rows;
  for (const trace::Trace& trace : traces) RankRoofline(trace, options, rows).add();
  return rows.take();
}

}  // namespace headrace::analysis::device
