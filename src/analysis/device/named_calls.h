// Calls by their names: the longest first, the tail folded into "others".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/device/call_statistics.h"
#include "headrace/analysis/device/kernel_kind.h"
#include "headrace/trace/columns.h"

namespace headrace::analysis::device {

struct NamedCalls {
  std::string_view name;
  KernelKind kind = KernelKind::other;
  CallStatistics calls;
};

/// Groups calls by name and kind: a name may be that of a copy and of a kernel.
class CallsByName {
 public:
  explicit CallsByName(const trace::Names& names);

  void add(trace::Names::Id name, KernelKind kind, std::int64_t duration_ns);
  /// By kind, then the longest in total first, then by name. Leaves this empty.
  std::vector<NamedCalls> take();

 private:
  const trace::Names& names_;
  std::vector<std::array<std::int32_t, kKernelKinds>> place_;  ///< by name; -1: none yet
  std::vector<NamedCalls> calls_;
};

/// Which names are shown one by one.
struct ShownNames {
  std::size_t most = 0;                      ///< those that took longest; 0: no limit
  double time_share = 1;                     ///< as many as it takes to cover this share of the time
  std::span<const std::string> always = {};  ///< parts of names that are shown anyway
};

inline constexpr std::string_view kOthers = "others";

/// Of each kind: the names that are shown, and behind them the others as one. `calls`: as `take` gives them.
std::vector<NamedCalls> folded(std::span<const NamedCalls> calls, const ShownNames& shown);

std::int64_t total_ns(std::span<const NamedCalls> calls) noexcept;

}  // namespace headrace::analysis::device
