// Sequences of kernels that come again and again: one fused operator would do their work.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/device/advice/rule.h"

namespace headrace::analysis::device {
namespace {

/// A kernel of one rank; sequences end where `breaks` stands.
struct Kernel {
  std::uint32_t type = 0;
  double start = 0;
  double duration = 0;
  double core = 0;    ///< time of its core, 0 if unknown
  double memory = 0;  ///< of that, moving data
  bool breaks = false;
};

struct Sequence {
  std::size_t first = 0;
  std::size_t length = 0;
  std::int64_t count = 0;
  std::size_t end = 0;  ///< behind its last occurrence, so that occurrences do not overlap
  double busy = 0;
  double wall = 0;
  double core = 0;
  double memory = 0;
};

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) noexcept {
  hash = (hash ^ (value + 1)) * 0x9E3779B97F4A7C15U;
  return hash ^ hash >> 29;
}

bool same(const std::vector<Kernel>& kernels, std::size_t a, std::size_t b, std::size_t length) noexcept {
  for (std::size_t i = 0; i < length; ++i) {
    if (kernels[a + i].type != kernels[b + i].type) return false;
  }
  return true;
}

/// Every sequence of two and more, by what it consists of.
std::vector<Sequence> sequences_of(const std::vector<Kernel>& kernels) {
  std::unordered_map<std::uint64_t, Sequence> found;
  for (std::size_t first = 0; first < kernels.size(); ++first) {
    std::uint64_t hash = 0;
    double busy = 0, core = 0, memory = 0;
    const auto most = static_cast<std::size_t>(kLimits.sequence_length);
    for (std::size_t length = 1; length <= most && first + length <= kernels.size(); ++length) {
      const Kernel& last = kernels[first + length - 1];
      if (last.breaks) break;
      hash = mixed(hash, last.type);
      busy += last.duration;
      core += last.core;
      memory += last.memory;
      if (length < 2) continue;
      const auto [at, is_new] =
          found.try_emplace(mixed(hash, length), Sequence{first, length, 0, 0, 0, 0, 0, 0});
      Sequence& sequence = at->second;
      if (sequence.end > first || !same(kernels, sequence.first, first, length)) continue;
      ++sequence.count;
      sequence.end = first + length;
      sequence.busy += busy;
      sequence.core += core;
      sequence.memory += memory;
      sequence.wall += last.start + last.duration - kernels[first].start;
    }
  }
  std::vector<Sequence> all;
  for (const auto& [hash, sequence] : found) {
    if (sequence.count > kLimits.sequence_repetitions) all.push_back(sequence);
  }
  return all;
}

double known(double value) noexcept { return std::isfinite(value) ? value : 0; }

}  // namespace

Findings check_fusible_operators(Evidence& evidence, const Kernels& table) {
  if (!numbers_of(*table.table, "start_time_ns"))
    return not_checked("kernel_details.csv has no column Start Time(us)");
  const Numbers starts = table.numbers("start_time_ns");
  const std::size_t rows = table.rows();
  const Numbers core = table.numbers("aicore_time_s");
  const Numbers vector = table.numbers("aiv_time_s");
  const Numbers mte2 = table.numbers("aic_mte2_time_s");
  const Numbers vector_mte2 = table.numbers("aiv_mte2_time_s");
  std::vector<std::size_t> order(rows);
  for (std::size_t i = 0; i < rows; ++i) order[i] = i;
  const Integers& ranks = table.table->integers("rank");
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(ranks[a], starts[a]) < std::pair(ranks[b], starts[b]);
  });
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  std::vector<std::string_view> names;
  std::vector<Kernel> kernels;
  double computing = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t row = order[i];
    if (i > 0 && ranks[order[i - 1]] != ranks[row]) kernels.push_back({0, 0, 0, 0, 0, true});
    const auto [at, is_new] = numbers.try_emplace(table.type(row), static_cast<std::uint32_t>(names.size()));
    if (is_new) names.push_back(table.type(row));
    Kernel kernel{at->second,
                  starts[row] / 1e9,
                  known(table.durations_s[row]),
                  known(core[row]) + known(vector[row]),
                  known(mte2[row]) + known(vector_mte2[row]),
                  table.is_communication(row) || table.core(row) == "AI_CPU"};
    if (!kernel.breaks) computing += kernel.duration;
    kernels.push_back(kernel);
  }
  double whole = 0;
  for (const StepParts& step : evidence.steps()) whole += step.whole;
  if (whole <= 0) whole = computing;

  std::vector<Sequence> all = sequences_of(kernels);
  std::erase_if(all, [&](const Sequence& sequence) {
    const bool host = sequence.wall > 0 && sequence.busy / sequence.wall < kLimits.sequence_busy_share;
    const bool memory = sequence.core > 0 && sequence.memory / sequence.core > kLimits.pipeline_ratio;
    return sequence.wall <= kLimits.sequence_share * whole || !(host || memory);
  });
  std::sort(all.begin(), all.end(), [](const Sequence& a, const Sequence& b) {
    return std::tuple(-a.wall, a.length, a.first) < std::tuple(-b.wall, b.length, b.first);
  });
  const std::string source = "kernel_details.csv: sequences of 2 to " +
                             std::to_string(kLimits.sequence_length) + " kernels, more than " +
                             std::to_string(kLimits.sequence_repetitions) + " times and over " +
                             percent(kLimits.sequence_share) + " of the steps";
  if (all.empty()) return {{Severity::none, std::to_string(rows) + " kernels", source}};
  Findings findings;
  constexpr std::size_t kShown = 5;
  std::vector<bool> shown(kernels.size());
  for (const Sequence& sequence : all) {
    if (findings.size() == kShown) break;
    // A sequence one place further on is not another finding.
    const auto begin = shown.begin() + static_cast<std::ptrdiff_t>(sequence.first);
    const auto end = begin + static_cast<std::ptrdiff_t>(sequence.length);
    if (std::find(begin, end, true) != end) continue;
    std::fill(begin, end, true);
    std::string list;
    for (std::size_t k = 0; k < sequence.length; ++k)
      list.append(k == 0 ? "" : " -> ").append(names[kernels[sequence.first + k].type]);
    const bool host = sequence.wall > 0 && sequence.busy / sequence.wall < kLimits.sequence_busy_share;
    findings.push_back({Severity::low,
                        std::to_string(sequence.count) + " x, busy " + duration(sequence.busy) + " of " +
                            duration(sequence.wall) + ", " + percent(sequence.wall / whole) + " of the steps",
                        source, 0,
                        std::string("a sequence of small kernels comes again and again, bound by ") +
                            (host ? "the host" : "moving data") + ": " + list});
  }
  return findings;
}

}  // namespace headrace::analysis::device
