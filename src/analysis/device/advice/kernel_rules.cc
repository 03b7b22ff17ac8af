// What kernel_details.csv says: the device's CPU, shapes, blocks, and pipelines that nothing fills.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/device/advice/rule.h"
#include "analysis/device/order.h"

namespace headrace::analysis::device {
namespace {

constexpr const char* kKernels = "kernel_details";

/// The columns of kernel_details that several rules need.
struct Kernels {
  const Table* table = nullptr;
  const Texts* names = nullptr;
  const Texts* types = nullptr;
  const Texts* cores = nullptr;
  Numbers durations;
};

/// Nothing, and why, if there are none.
std::optional<Kernels> kernels_of(Evidence& evidence, std::string& why) {
  Kernels kernels;
  kernels.table = evidence.table(kKernels, why);
  if (kernels.table == nullptr) return std::nullopt;
  kernels.names = texts_of(*kernels.table, "name");
  kernels.types = texts_of(*kernels.table, "type");
  kernels.cores = texts_of(*kernels.table, "accelerator_core");
  const auto durations = numbers_of(*kernels.table, "duration_s");
  if (kernels.names == nullptr || kernels.types == nullptr || kernels.cores == nullptr || !durations) {
    why = "kernel_details.csv has no columns Name, Type, Accelerator Core and Duration(us)";
    return std::nullopt;
  }
  kernels.durations = *durations;
  return kernels;
}

double sum_of(const Numbers& values) {
  double sum = 0;
  for (const double value : values) sum += std::isfinite(value) ? value : 0;
  return sum;
}

bool is_communication(std::string_view core) noexcept { return core == "HCCL" || core == "COMMUNICATION"; }

/// Time of all kernels that compute.
double computing(const Kernels& kernels) {
  double sum = 0;
  for (std::size_t row = 0; row < kernels.durations.size(); ++row) {
    if (!is_communication((*kernels.cores)[row]) && std::isfinite(kernels.durations[row]))
      sum += kernels.durations[row];
  }
  return sum;
}

struct TypeSum {
  std::int64_t count = 0;
  double total = 0;
  double longest = 0;
};

/// "Cast 3 x 40 us, Index 1 x 12 us": the longest in total first, five of them.
std::string listed(const std::map<std::string, TypeSum, std::less<>>& types) {
  auto sorted = descending_entries(types, [](const TypeSum& sum) { return sum.total; });
  sorted.resize(std::min<std::size_t>(5, sorted.size()));
  return joined(sorted, ", ", [](const auto& each) {
    return each.first + " " + std::to_string(each.second.count) + " x, " + duration(each.second.total) +
           " in all";
  });
}

void add(std::map<std::string, TypeSum, std::less<>>& types, std::string_view type, double duration) {
  TypeSum& sum = types[std::string(type)];
  ++sum.count;
  sum.total += duration;
  sum.longest = std::max(sum.longest, duration);
}

}  // namespace

Findings check_aicpu(Evidence& evidence) {
  std::string why;
  const auto kernels = kernels_of(evidence, why);
  if (!kernels) return not_checked(why);
  std::map<std::string, TypeSum, std::less<>> types;
  double longest = 0;
  double total = 0;
  for (std::size_t row = 0; row < kernels->durations.size(); ++row) {
    const double duration = kernels->durations[row];
    if ((*kernels->cores)[row] != "AI_CPU" || !std::isfinite(duration)) continue;
    add(types, (*kernels->types)[row], duration);
    longest = std::max(longest, duration);
    total += duration;
  }
  const std::string source =
      "kernel_details.csv: Accelerator Core AI_CPU, the longest over " + duration(kLimits.long_kernel_s);
  if (longest < kLimits.long_kernel_s)
    return nothing_found("no long operator runs on the device's CPU",
                         std::to_string(types.size()) + " types of operators there", source);
  return {{severity_of_share(total / std::max(computing(*kernels), 1e-12)),
           "operators run on the device's CPU, which is slow", listed(types),
           "use types that the cores have (float instead of double, int32 instead of int64), and masks "
           "instead of "
           "index, index_put and nonzero",
           source}};
}

Findings check_dynamic_shapes(Evidence& evidence) {
  std::string why;
  const auto kernels = kernels_of(evidence, why);
  if (!kernels) return not_checked(why);
  const Texts* states = texts_of(*kernels->table, "op_state");
  if (states == nullptr)
    return not_checked("kernel_details.csv has no column OP State (recorded at Level1 and above)");
  std::int64_t fixed = 0;
  std::int64_t dynamic = 0;
  for (std::size_t row = 0; row < kernels->durations.size(); ++row) {
    fixed += (*states)[row] == "static" ? 1 : 0;
    dynamic += (*states)[row] == "dynamic" ? 1 : 0;
  }
  const std::string figures =
      std::to_string(dynamic) + " kernels dynamic, " + std::to_string(fixed) + " static";
  const std::string source = "kernel_details.csv: OP State, no static one";
  if (fixed > 0 || dynamic == 0) return nothing_found("shapes are static", figures, source);
  return {
      {Severity::medium, "every kernel has dynamic shapes", figures,
       "torch_npu.npu.set_compile_mode(jit_compile=False) and torch_npu.npu.config.allow_internal_format = "
       "False; pad inputs to a few shapes",
       source}};
}

Findings check_block_dim(Evidence& evidence) {
  std::string why;
  const auto kernels = kernels_of(evidence, why);
  if (!kernels) return not_checked(why);
  const auto blocks = numbers_of(*kernels->table, "block_dim");
  if (!blocks) return not_checked("kernel_details.csv has no column Block Dim");
  const auto& cores = evidence.cores();
  if (!cores) return not_checked("file PROF_*/device_*/info.json absent, which has the number of cores");
  const auto mixed = numbers_of(*kernels->table, "mix_block_dim");
  std::map<std::string, TypeSum, std::less<>> types;
  double total = 0;
  const auto uneven = [](double count, std::int64_t of) {
    return of > 0 && std::isfinite(count) && std::abs(count) < 1e9 &&
           static_cast<std::int64_t>(count) % of != 0;
  };
  for (std::size_t row = 0; row < kernels->durations.size(); ++row) {
    const std::string_view core = (*kernels->cores)[row];
    const bool vector = core == "AI_VECTOR_CORE" || core == "MIX_AIV";
    if (core != "AI_CORE" && core != "MIX_AIC" && !vector) continue;
    const std::int64_t own = vector && cores->vector > 0 ? cores->vector : cores->cube;
    const double block = (*blocks)[row];
    if (!uneven(block, own) || !std::isfinite(kernels->durations[row])) continue;
    if (core == "MIX_AIC" && mixed && (*mixed)[row] > 0 && !uneven((*mixed)[row], cores->vector)) continue;
    add(types, (*kernels->types)[row], kernels->durations[row]);
    total += kernels->durations[row];
  }
  const std::string source = "kernel_details.csv: Block Dim, against " + std::to_string(cores->cube) +
                             " cube and " + std::to_string(cores->vector) + " vector cores of info.json";
  if (types.empty()) return nothing_found("kernels use all cores evenly", "0 types of operators", source);
  return {{severity_of_share(total / std::max(computing(*kernels), 1e-12)) == Severity::high
               ? Severity::medium
               : Severity::low,
           "kernels divide their work into blocks that do not fill the cores", listed(types),
           "tune these operators (AOE)", source}};
}

Findings check_unbound_operators(Evidence& evidence) {
  std::string why;
  const auto kernels = kernels_of(evidence, why);
  if (!kernels) return not_checked(why);
  constexpr std::array<const char*, 9> kRatios = {"aic_mac_ratio",    "aic_scalar_ratio",  "aic_mte1_ratio",
                                                  "aic_mte2_ratio",   "aic_fixpipe_ratio", "aiv_vec_ratio",
                                                  "aiv_scalar_ratio", "aiv_mte2_ratio",    "aiv_mte3_ratio"};
  std::vector<Numbers> ratios;
  for (const char* column : kRatios) {
    if (auto ratio = numbers_of(*kernels->table, column)) ratios.push_back(std::move(*ratio));
  }
  if (ratios.empty())
    return not_checked(
        "kernel_details.csv has no ratios of pipelines (aic_metrics=PipeUtilization, Level1 and above)");
  std::map<std::string, TypeSum, std::less<>> types;
  double total = 0;
  for (std::size_t row = 0; row < kernels->durations.size(); ++row) {
    const double duration = kernels->durations[row];
    if (!(duration >= kLimits.long_kernel_s) || is_communication((*kernels->cores)[row])) continue;
    double highest = 0;
    for (const Numbers& ratio : ratios)
      highest = std::max(highest, std::isfinite(ratio[row]) ? ratio[row] : 0);
    if (highest == 0 || highest > kLimits.pipeline_ratio) continue;
    add(types, (*kernels->types)[row], duration);
    total += duration;
  }
  const std::string source = "kernel_details.csv: ratios of kernels over " + duration(kLimits.long_kernel_s) +
                             ", none over " + percent(kLimits.pipeline_ratio);
  const double share = total / std::max(sum_of({computing(*kernels)}), 1e-12);
  if (types.empty())
    return nothing_found("long kernels keep a pipeline busy", "0 types of operators", source);
  return {{share >= 0.05 ? Severity::medium : Severity::low, "no pipeline is busy in long kernels",
           listed(types) + "; " + percent(share) + " of the computing time",
           "tune these operators (AOE), or give them larger shapes", source}};
}

}  // namespace headrace::analysis::device
