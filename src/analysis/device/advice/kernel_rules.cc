// Kernels and cores: the device's CPU, shapes, blocks, pipelines that nothing fills, frequency.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/device/advice/rule.h"
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

Findings check_aicpu(Evidence&, const Kernels& kernels) {
  const TypeSums sums = kernels.where([&](std::size_t row) { return kernels.core(row) == "AI_CPU"; });
  const std::string source =
      "kernel_details.csv: Accelerator Core AI_CPU, the longest over " + duration(kLimits.long_kernel_s);
  if (sums.longest_s < kLimits.long_kernel_s) return {{Severity::none, sums.count_text() + " there", source}};
  return {{severity_of_share(kernels.share_of_computing(sums.seconds)), sums.listed(), source}};
}

Findings check_dynamic_shapes(Evidence&, const Kernels& kernels) {
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
      fixed == 0 && dynamic > 0,
      {Severity::medium, std::to_string(dynamic) + " kernels dynamic, " + std::to_string(fixed) + " static",
       "kernel_details.csv: OP State, no static one"});
}

Findings check_block_dim(Evidence& evidence, const Kernels& kernels) {
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
  if (sums.types.empty()) return {{Severity::none, sums.count_text(), source}};
  const bool much = severity_of_share(kernels.share_of_computing(sums.seconds)) == Severity::high;
  return {{much ? Severity::medium : Severity::low, sums.listed(), source}};
}

Findings check_unbound_operators(Evidence&, const Kernels& kernels) {
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
  const std::string source = "kernel_details.csv: ratios of kernels over " + duration(kLimits.long_kernel_s) +
                             ", none over " + percent(kLimits.pipeline_ratio);
  const double share = kernels.share_of_computing(sums.seconds);
  if (sums.types.empty()) return {{Severity::none, sums.count_text(), source}};
  return {{share >= 0.05 ? Severity::medium : Severity::low,
           sums.listed() + "; " + percent(share) + " of the computing time", source}};
}

namespace {

constexpr double kNanosecond = 1e-9;

/// A rank's frequency over time.
struct Frequency {
  std::int64_t last_ns = -1;
  double last_mhz = 0;
  double highest_mhz = 0;
  double sum = 0;  ///< MHz x s
  double seconds = 0;

  void add(std::int64_t at_ns, double mhz) {
    if (last_ns >= 0 && at_ns > last_ns) {
      const double passed_s = static_cast<double>(at_ns - last_ns) * kNanosecond;
      sum += last_mhz * passed_s;
      seconds += passed_s;
    }
    last_ns = std::max(last_ns, at_ns);
    last_mhz = mhz;
    highest_mhz = std::max(highest_mhz, mhz);
  }
  double mean_mhz() const { return seconds > 0 ? sum / seconds : last_mhz; }
  double drop() const { return highest_mhz > 0 ? 1 - mean_mhz() / highest_mhz : 0; }
};

std::string megahertz(double mhz) { return std::to_string(std::llround(mhz)) + " MHz"; }

/// The shapes in "32,128;128,64", with or without quotes.
std::vector<std::vector<std::int64_t>> shapes_in(std::string_view text) {
  std::vector<std::vector<std::int64_t>> shapes(1);
  for (std::size_t at = 0; at < text.size();) {
    std::int64_t axis = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), axis);
    if (error == std::errc()) {
      shapes.back().push_back(axis);
      at = static_cast<std::size_t>(end - text.data());
      continue;
    }
    if (text[at] == ';') shapes.emplace_back();
    ++at;
  }
  std::erase_if(shapes, [](const auto& shape) { return shape.empty(); });
  return shapes;
}

/// Bytes of an element; 4 for what is not known.
double bytes_of_type(std::string_view type) {
  if (type.find("64") != std::string_view::npos || type == "DOUBLE") return 8;
  if (type.find("16") != std::string_view::npos) return 2;
  if (type.find("8") != std::string_view::npos || type == "BOOL") return 1;
  return 4;
}

double bytes_of(const std::vector<std::vector<std::int64_t>>& shapes, std::string_view types) {
  double bytes = 0;
  for (const auto& shape : shapes) {
    const std::size_t end = std::min(types.find(';'), types.size());
    double elements = 1;
    for (const std::int64_t axis : shape) elements *= static_cast<double>(std::max<std::int64_t>(0, axis));
    bytes += elements * bytes_of_type(types.substr(0, end));
    types.remove_prefix(std::min(end + 1, types.size()));
  }
  return bytes;
}

bool fits(const std::vector<std::vector<std::int64_t>>& shapes, std::int64_t multiple) {
  return std::all_of(shapes.begin(), shapes.end(),
                     [multiple](const auto& shape) { return shape.back() % multiple == 0; });
}

enum class Kind : std::uint8_t { none, cube, attention, vector };

class CorePerformance {
 public:
  CorePerformance(const Kernels& kernels, const Texts& shapes)
      : kernels_(kernels), shapes_(shapes), data_types_(texts_of(*kernels.table, "input_data_types")) {
    vector_s_ = kernels.where(
        [&](std::size_t row) { return !kernels_.is_communication(row) && kind_of(row) == Kind::vector; });
  }

  /// Kernels that leave their pipelines idle.
  TypeSums idle() const {
    TypeSums sums;
    kernels_.each([&](std::size_t row) {
      if (kernels_.is_communication(row)) return;
      const Kind kind = kind_of(row);
      const bool is_idle = kind == Kind::cube        ? is_idle_cube(row)
                           : kind == Kind::attention ? is_idle_attention(row)
                                                     : kind == Kind::vector && is_idle_vector(row);
      if (is_idle)
        sums.add(kernels_.type(row), kernels_.durations_s[row]).misfits += misfits(row, kind) ? 1 : 0;
    });
    return sums;
  }

 private:
  Kind kind_of(std::size_t row) const {
    const std::string_view type = kernels_.type(row);
    if (type.find("FlashAttention") != std::string_view::npos) return Kind::attention;
    if (type.find("MatMul") != std::string_view::npos) return Kind::cube;
    const std::string_view core = kernels_.core(row);
    return core == "AI_VECTOR_CORE" || core == "MIX_AIV" ? Kind::vector : Kind::none;
  }

  bool is_idle_cube(std::size_t row) const {
    const std::string_view types = data_types_ == nullptr ? std::string_view() : (*data_types_)[row];
    // A ratio that is not known is NaN, which is below no limit.
    return mac_[row] < kLimits.cube_mac_ratio && aic_mte2_[row] < kLimits.cube_mte2_ratio &&
           bytes_of(shapes_in(shapes_[row]), types) >= kLimits.large_cube_bytes;
  }
  bool is_idle_attention(std::size_t row) const {
    return aic_mte2_[row] < kLimits.attention_mte2_ratio && fixpipe_[row] < kLimits.attention_fixpipe_ratio &&
           vec_[row] < kLimits.attention_vector_ratio;
  }
  bool is_idle_vector(std::size_t row) const {
    const double seconds = vector_s_.types.find(kernels_.type(row))->second.seconds;
    if (seconds < kLimits.vector_share * kernels_.computing_s && seconds < kLimits.vector_s) return false;
    return vec_[row] < kLimits.vector_ratio && aiv_mte2_[row] < kLimits.vector_ratio &&
           aiv_mte3_[row] < kLimits.vector_ratio &&
           vec_[row] + aiv_mte2_[row] + aiv_mte3_[row] < kLimits.vector_total_ratio;
  }
  bool misfits(std::size_t row, Kind kind) const {
    if (kind != Kind::cube && kind != Kind::attention) return false;
    return !fits(shapes_in(shapes_[row]), kind == Kind::cube ? kLimits.cube_axis : kLimits.attention_axis);
  }

  const Kernels& kernels_;
  const Texts& shapes_;
  const Texts* data_types_;
  TypeSums vector_s_;
  Numbers mac_ = kernels_.numbers("aic_mac_ratio"), aic_mte2_ = kernels_.numbers("aic_mte2_ratio"),
          fixpipe_ = kernels_.numbers("aic_fixpipe_ratio"), vec_ = kernels_.numbers("aiv_vec_ratio"),
          aiv_mte2_ = kernels_.numbers("aiv_mte2_ratio"), aiv_mte3_ = kernels_.numbers("aiv_mte3_ratio");
};

}  // namespace

Findings check_core_performance(Evidence&, const Kernels& kernels) {
  const Texts* shapes = texts_of(*kernels.table, "input_shapes");
  if (shapes == nullptr) return not_checked("kernel_details.csv has no column Input Shapes");
  constexpr std::array kRatios = {"aic_mac_ratio", "aic_mte2_ratio", "aic_fixpipe_ratio",
                                  "aiv_vec_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio"};
  if (std::none_of(kRatios.begin(), kRatios.end(),
                   [&](const char* ratio) { return numbers_of(*kernels.table, ratio); }))
    return not_checked(kNoRatios);
  const TypeSums sums = CorePerformance(kernels, *shapes).idle();
  const std::string source =
      "kernel_details.csv: ratios of pipelines of matrix multiplications over 100 MB, flash attention and "
      "the vector operators that take " +
      percent(kLimits.vector_share) + " of the computing time";
  if (sums.types.empty()) return {{Severity::none, sums.count_text(), source}};
  std::string cure = "tune these operators (AOE)";
  if (std::any_of(sums.types.begin(), sums.types.end(),
                  [](const auto& each) { return each.second.misfits > 0; }))
    cure += "; make the innermost axes of matrices multiples of " + std::to_string(kLimits.cube_axis) +
            ", those of attention multiples of " + std::to_string(kLimits.attention_axis);
  return {{severity_of_share(kernels.share_of_computing(sums.seconds)), sums.listed(), source, 0, "", cure}};
}

Findings check_core_frequency(Evidence& evidence) {
  std::string why;
  const Table* table = evidence.table("counters", why);
  if (table == nullptr) return not_checked("table AICORE_FREQ absent, which databases of profiles have");
  const Integers& ranks = table->integers("rank");
  const Integers& stamps = table->integers("timestamp_ns");
  const Texts& names = table->texts("counter");
  const Numbers& values = table->numbers("value");
  std::map<std::int64_t, Frequency> frequencies;
  for (std::size_t row = 0; row < table->rows(); ++row) {
    if (names[row] == "AI Core Freq") frequencies[ranks[row]].add(stamps[row], values[row]);
  }
  if (frequencies.empty()) return not_checked("table AICORE_FREQ absent or empty");
  const auto worst =
      std::max_element(frequencies.begin(), frequencies.end(),
                       [](const auto& a, const auto& b) { return a.second.drop() < b.second.drop(); });
  const Frequency& of = worst->second;
  const std::string figures = rank_text(worst->first) + ": " + megahertz(of.mean_mhz()) + " of " +
                              megahertz(of.highest_mhz) + ", " + percent(of.drop()) + " below";
  const std::string source =
      "AICORE_FREQ: mean against the highest, limit " + percent(kLimits.frequency_drop);
  return found_if(
      of.drop() >= kLimits.frequency_drop,
      {of.drop() >= 2 * kLimits.frequency_drop ? Severity::high : Severity::medium, figures, source});
}

}  // namespace headrace::analysis::device
