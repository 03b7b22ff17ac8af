// Rules about kernel_details.csv: the device's CPU, shapes, blocks, and pipelines that nothing fills.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/device/advice/kernel_columns.h"
#include "analysis/device/order.h"

namespace headrace::analysis::device {

TypeSums::Sum& TypeSums::add(std::string_view type, double duration_s) {
  Sum& sum = types[std::string(type)];
  ++sum.count;
  sum.seconds += duration_s;
  seconds += duration_s;
  longest_s = std::max(longest_s, duration_s);
  return sum;
}

std::string TypeSums::listed() const {
  auto sorted = descending_entries(types, [](const Sum& sum) { return sum.seconds; });
  sorted.resize(std::min<std::size_t>(5, sorted.size()));
  return joined(sorted, ", ", [](const auto& each) {
    const auto& [type, sum] = each;
    std::string text = type + " " + std::to_string(sum.count) + " x, " + duration(sum.seconds) + " in all";
    if (sum.misfits > 0) text += ", innermost axes of " + std::to_string(sum.misfits) + " do not fit";
    return text;
  });
}

std::optional<Kernels> Kernels::of(Evidence& evidence, std::string& why) {
  Kernels kernels;
  kernels.table = evidence.table("kernel_details", why);
  if (kernels.table == nullptr) return std::nullopt;
  kernels.types = texts_of(*kernels.table, "type");
  kernels.cores = texts_of(*kernels.table, "accelerator_core");
  auto durations = numbers_of(*kernels.table, "duration_s");
  if (kernels.types == nullptr || kernels.cores == nullptr || !durations) {
    why = "kernel_details.csv has no columns Type, Accelerator Core and Duration(us)";
    return std::nullopt;
  }
  kernels.durations_s = std::move(*durations);
  kernels.each([&](std::size_t row) {
    if (!kernels.is_communication(row)) kernels.computing_s += kernels.durations_s[row];
  });
  return kernels;
}

Numbers Kernels::numbers(const char* column) const {
  return numbers_of(*table, column).value_or(Numbers(rows(), std::nan("")));
}

Findings check_aicpu(Evidence& evidence) {
  return over_kernels(evidence, [](const Kernels& kernels) -> Findings {
    const TypeSums sums = kernels.where([&](std::size_t row) { return kernels.core(row) == "AI_CPU"; });
    const std::string source =
        "kernel_details.csv: Accelerator Core AI_CPU, the longest over " + duration(kLimits.long_kernel_s);
    if (sums.longest_s < kLimits.long_kernel_s)
      return nothing_found("no long operator runs on the device's CPU", sums.count_text() + " there", source);
    return {{severity_of_share(kernels.share_of_computing(sums.seconds)),
             "operators run on the device's CPU, which is slow", sums.listed(),
             "use types that the cores have (float instead of double, int32 instead of int64), and masks "
             "instead of index, index_put and nonzero",
             source}};
  });
}

Findings check_dynamic_shapes(Evidence& evidence) {
  return over_kernels(evidence, [](const Kernels& kernels) -> Findings {
    const Texts* states = texts_of(*kernels.table, "op_state");
    if (states == nullptr)
      return not_checked("kernel_details.csv has no column OP State (recorded at Level1 and above)");
    std::int64_t fixed = 0;
    std::int64_t dynamic = 0;
    for (std::size_t row = 0; row < kernels.rows(); ++row) {
      fixed += (*states)[row] == "static" ? 1 : 0;
      dynamic += (*states)[row] == "dynamic" ? 1 : 0;
    }
    return found_if(
        fixed == 0 && dynamic > 0, "shapes are static",
        {Severity::medium, "every kernel has dynamic shapes",
         std::to_string(dynamic) + " kernels dynamic, " + std::to_string(fixed) + " static",
         "torch_npu.npu.set_compile_mode(jit_compile=False) and torch_npu.npu.config.allow_internal_format = "
         "False; pad inputs to a few shapes",
         "kernel_details.csv: OP State, no static one"});
  });
}

Findings check_block_dim(Evidence& evidence) {
  return over_kernels(evidence, [&](const Kernels& kernels) -> Findings {
    if (!numbers_of(*kernels.table, "block_dim"))
      return not_checked("kernel_details.csv has no column Block Dim");
    const auto& cores = evidence.cores();
    if (!cores) return not_checked("file PROF_*/device_*/info.json absent, which has the number of cores");
    const Numbers blocks = kernels.numbers("block_dim");
    const Numbers mixed = kernels.numbers("mix_block_dim");
    const auto uneven = [](double count, std::int64_t of) {
      return of > 0 && std::abs(count) < 1e9 && static_cast<std::int64_t>(count) % of != 0;
    };
    const TypeSums sums = kernels.where([&](std::size_t row) {
      const std::string_view core = kernels.core(row);
      const bool vector = core == "AI_VECTOR_CORE" || core == "MIX_AIV";
      if (core != "AI_CORE" && core != "MIX_AIC" && !vector) return false;
      if (!uneven(blocks[row], vector && cores->vector > 0 ? cores->vector : cores->cube)) return false;
      return core != "MIX_AIC" || !(mixed[row] > 0) || uneven(mixed[row], cores->vector);
    });
    const std::string source = "kernel_details.csv: Block Dim, against " + std::to_string(cores->cube) +
                               " cube and " + std::to_string(cores->vector) + " vector cores of info.json";
    if (sums.types.empty()) return nothing_found("kernels use all cores evenly", sums.count_text(), source);
    const bool much = severity_of_share(kernels.share_of_computing(sums.seconds)) == Severity::high;
    return {{much ? Severity::medium : Severity::low,
             "kernels divide their work into blocks that do not fill the cores", sums.listed(),
             "tune these operators (AOE)", source}};
  });
}

Findings check_unbound_operators(Evidence& evidence) {
  return over_kernels(evidence, [](const Kernels& kernels) -> Findings {
    std::vector<Numbers> ratios;
    for (const char* column :
         {"aic_mac_ratio", "aic_scalar_ratio", "aic_mte1_ratio", "aic_mte2_ratio", "aic_fixpipe_ratio",
          "aiv_vec_ratio", "aiv_scalar_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio"}) {
      if (auto ratio = numbers_of(*kernels.table, column)) ratios.push_back(std::move(*ratio));
    }
    if (ratios.empty()) return not_checked(kNoRatios);
    const TypeSums sums = kernels.where([&](std::size_t row) {
      if (kernels.durations_s[row] < kLimits.long_kernel_s || kernels.is_communication(row)) return false;
      double highest = 0;
      for (const Numbers& ratio : ratios)
        highest = std::max(highest, std::isfinite(ratio[row]) ? ratio[row] : 0);
      return highest > 0 && highest <= kLimits.pipeline_ratio;
    });
    const std::string source = "kernel_details.csv: ratios of kernels over " +
                               duration(kLimits.long_kernel_s) + ", none over " +
                               percent(kLimits.pipeline_ratio);
    const double share = kernels.share_of_computing(sums.seconds);
    if (sums.types.empty())
      return nothing_found("long kernels keep a pipeline busy", sums.count_text(), source);
    return {{share >= 0.05 ? Severity::medium : Severity::low, "no pipeline is busy in long kernels",
             sums.listed() + "; " + percent(share) + " of the computing time",
             "tune these operators (AOE), or give them larger shapes", source}};
  });
}

}  // namespace headrace::analysis::device
