// `kernel_details` as the rules about kernels read it: rows that a rule wants, summed by the kernel's type.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/device/advice/rule.h"

namespace headrace::analysis::device {

inline constexpr const char* kNoRatios =
    "kernel_details.csv has no ratios of pipelines (aic_metrics=PipeUtilization, Level1 and above)";

/// Kernels of some types, the seconds of each type and of all.
struct TypeSums {
  struct Sum {
    std::int64_t count = 0;
    double seconds = 0;
    std::int64_t misfits = 0;
  };
  std::map<std::string, Sum, std::less<>> types;
  double seconds = 0;
  double longest_s = 0;

  Sum& add(std::string_view type, double duration_s);
  std::string count_text() const { return std::to_string(types.size()) + " types of operators"; }
  /// "Cast 3 x, 120 us in all, Index 1 x, 12 us in all": five of them, the longest in total first.
  std::string listed() const;
};

class Kernels {
 public:
  /// Nothing, with the reason in `why`, if no profile has the table or it lacks a column that every rule needs.
  static std::optional<Kernels> of(Evidence& evidence, std::string& why);

  std::size_t rows() const noexcept { return durations_s.size(); }
  std::string_view type(std::size_t row) const { return (*types)[row]; }
  std::string_view core(std::size_t row) const { return (*cores)[row]; }
  bool is_communication(std::size_t row) const { return core(row) == "HCCL" || core(row) == "COMMUNICATION"; }
  /// The column, NaN in every row if the table has none.
  Numbers numbers(const char* column) const;
  /// Calls `use` with each row that has a duration.
  template <class Use>
  void each(Use use) const {
    for (std::size_t row = 0; row < rows(); ++row) {
      if (durations_s[row] - durations_s[row] == 0) use(row);  // finite
    }
  }
  template <class Wanted>
  TypeSums where(Wanted wanted) const {
    TypeSums sums;
    each([&](std::size_t row) {
      if (wanted(row)) sums.add(type(row), durations_s[row]);
    });
    return sums;
  }
  double share_of_computing(double seconds) const noexcept {
    return seconds / (computing_s > 1e-12 ? computing_s : 1e-12);
  }

  const Table* table = nullptr;
  const Texts* types = nullptr;
  const Texts* cores = nullptr;
  Numbers durations_s;
  double computing_s = 0;  ///< of all kernels that compute
};

/// What `check` finds in the kernels, or why they cannot be checked.
template <class Check>
Findings over_kernels(Evidence& evidence, Check check) {
  std::string why;
  const std::optional<Kernels> kernels = Kernels::of(evidence, why);
  return kernels ? check(*kernels) : not_checked(why);
}

}  // namespace headrace::analysis::device
