// The device's cores: how fast they ran, and operators that leave their pipelines idle.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/device/advice/rule.h"
#include "analysis/device/order.h"

namespace headrace::analysis::device {
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
  /// False, with the reason, where the table does not tell.
  bool open(const Table& table, std::string& why) {
    types_ = texts_of(table, "type");
    cores_ = texts_of(table, "accelerator_core");
    shapes_ = texts_of(table, "input_shapes");
    data_types_ = texts_of(table, "input_data_types");
    const auto durations = numbers_of(table, "duration_s");
    if (types_ == nullptr || cores_ == nullptr || shapes_ == nullptr || !durations) {
      why = "kernel_details.csv has no columns Type, Accelerator Core, Input Shapes and Duration(us)";
      return false;
    }
    durations_ = *durations;
    bool any = false;
    const auto column = [&](const char* name) {
      const auto ratio = numbers_of(table, name);
      any = any || ratio;
      return ratio.value_or(Numbers(durations_.size(), std::nan("")));
    };
    mac_ = column("aic_mac_ratio");
    aic_mte2_ = column("aic_mte2_ratio");
    fixpipe_ = column("aic_fixpipe_ratio");
    vec_ = column("aiv_vec_ratio");
    aiv_mte2_ = column("aiv_mte2_ratio");
    aiv_mte3_ = column("aiv_mte3_ratio");
    if (!any)
      why = "kernel_details.csv has no ratios of pipelines (aic_metrics=PipeUtilization, Level1 and above)";
    return any;
  }

  Findings judge() {
    std::map<std::string, double, std::less<>> vector_s;
    for (std::size_t row = 0; row < durations_.size(); ++row) {
      if (!std::isfinite(durations_[row]) || is_communication(row)) continue;
      computing_s_ += durations_[row];
      if (kind_of(row) == Kind::vector) vector_s[std::string((*types_)[row])] += durations_[row];
    }
    for (std::size_t row = 0; row < durations_.size(); ++row) {
      if (!std::isfinite(durations_[row]) || is_communication(row)) continue;
      const Kind kind = kind_of(row);
      const bool idle = kind == Kind::cube        ? is_idle_cube(row)
                        : kind == Kind::attention ? is_idle_attention(row)
                                                  : kind == Kind::vector && is_idle_vector(row, vector_s);
      if (!idle) continue;
      Sum& sum = sums_[std::string((*types_)[row])];
      ++sum.count;
      sum.seconds += durations_[row];
      sum.misfits += misfits(row, kind) ? 1 : 0;
    }
    return findings();
  }

 private:
  struct Sum {
    std::int64_t count = 0;
    double seconds = 0;
    std::int64_t misfits = 0;
  };

  bool is_communication(std::size_t row) const {
    return (*cores_)[row] == "HCCL" || (*cores_)[row] == "COMMUNICATION";
  }
  Kind kind_of(std::size_t row) const {
    const std::string_view type = (*types_)[row];
    if (type.find("FlashAttention") != std::string_view::npos) return Kind::attention;
    if (type.find("MatMul") != std::string_view::npos) return Kind::cube;
    const std::string_view core = (*cores_)[row];
    return core == "AI_VECTOR_CORE" || core == "MIX_AIV" ? Kind::vector : Kind::none;
  }

  /// A ratio that is not known is no sign of anything.
  static bool below(double ratio, double limit) { return std::isfinite(ratio) && ratio < limit; }

  bool is_idle_cube(std::size_t row) const {
    const std::string_view types = data_types_ == nullptr ? std::string_view() : (*data_types_)[row];
    return below(mac_[row], kLimits.cube_mac_ratio) && below(aic_mte2_[row], kLimits.cube_mte2_ratio) &&
           bytes_of(shapes_in((*shapes_)[row]), types) >= kLimits.large_cube_bytes;
  }
  bool is_idle_attention(std::size_t row) const {
    return below(aic_mte2_[row], kLimits.attention_mte2_ratio) &&
           below(fixpipe_[row], kLimits.attention_fixpipe_ratio) &&
           below(vec_[row], kLimits.attention_vector_ratio);
  }
  bool is_idle_vector(std::size_t row, const std::map<std::string, double, std::less<>>& vector_s) const {
    const double seconds = vector_s.find((*types_)[row])->second;
    if (seconds < kLimits.vector_share * computing_s_ && seconds < kLimits.vector_s) return false;
    return below(vec_[row], kLimits.vector_ratio) && below(aiv_mte2_[row], kLimits.vector_ratio) &&
           below(aiv_mte3_[row], kLimits.vector_ratio) &&
           below(vec_[row] + aiv_mte2_[row] + aiv_mte3_[row], kLimits.vector_total_ratio);
  }
  bool misfits(std::size_t row, Kind kind) const {
    if (kind != Kind::cube && kind != Kind::attention) return false;
    return !fits(shapes_in((*shapes_)[row]), kind == Kind::cube ? kLimits.cube_axis : kLimits.attention_axis);
  }

  Findings findings() const {
    const std::string source =
        "kernel_details.csv: ratios of pipelines of matrix multiplications over 100 MB, flash attention and "
        "the "
        "vector operators that take " +
        percent(kLimits.vector_share) + " of the computing time";
    if (sums_.empty())
      return nothing_found("the operators keep a pipeline busy", "0 types of operators", source);
    const auto sorted = descending_entries(sums_, [](const Sum& sum) { return sum.seconds; });
    constexpr std::size_t kShown = 5;
    std::string figures;
    double seconds = 0;
    bool misfit = false;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const Sum& sum = sorted[i].second;
      seconds += sum.seconds;
      misfit = misfit || sum.misfits > 0;
      if (i >= kShown) continue;
      figures += (i == 0 ? "" : ", ") + sorted[i].first + " " + std::to_string(sum.count) + " x, " +
                 duration(sum.seconds) + " in all";
      if (sum.misfits > 0) figures += ", innermost axes of " + std::to_string(sum.misfits) + " do not fit";
    }
    std::string cure = "tune these operators (AOE)";
    if (misfit)
      cure += "; make the innermost axes of matrices multiples of " + std::to_string(kLimits.cube_axis) +
              ", those of attention multiples of " + std::to_string(kLimits.attention_axis);
    return {{severity_of_share(seconds / std::max(computing_s_, 1e-12)),
             "operators leave the cores' pipelines idle", figures, cure, source}};
  }

  const Texts* types_ = nullptr;
  const Texts* cores_ = nullptr;
  const Texts* shapes_ = nullptr;
  const Texts* data_types_ = nullptr;
  Numbers durations_, mac_, aic_mte2_, fixpipe_, vec_, aiv_mte2_, aiv_mte3_;
  double computing_s_ = 0;
  std::map<std::string, Sum, std::less<>> sums_;
};

}  // namespace

Findings check_core_performance(Evidence& evidence) {
  std::string why;
  const Table* table = evidence.table("kernel_details", why);
  CorePerformance rule;
  if (table == nullptr || !rule.open(*table, why)) return not_checked(why);
  return rule.judge();
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
  if (of.drop() < kLimits.frequency_drop)
    return nothing_found("the cores keep their frequency", figures, source);
  return {{of.drop() >= 2 * kLimits.frequency_drop ? Severity::high : Severity::medium,
           "the cores ran below their frequency", figures,
           "look at temperature and power of the device, and at other work on it", source}};
}

}  // namespace headrace::analysis::device
