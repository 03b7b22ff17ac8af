// Where an item, and the batch that it became part of, was at every moment since its source began to make it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/metrics/sink_probe.h"

namespace headrace::pipeline {

/// Follows one item through the operators, so that a wait for it can be charged to what it was doing
/// meanwhile. One thread has an item at a time; a trail travels with it.
///
/// Stages are numbered from the source (0) on. Times are Clock::now_ns(). The parts lie end to end: each
/// lasts from the end of the one before it.
class Trail {
 public:
  using What = metrics::WaitCharges::What;

  explicit Trail(std::int64_t began) noexcept : began_ns_(began) {}

  std::int64_t began_ns() const noexcept { return began_ns_; }
  /// Until when everything is known.
  std::int64_t known_ns() const noexcept { return parts_.empty() ? began_ns_ : parts_.back().until_ns; }

  /// From the last known moment until `now` the item was in `stage`, doing `what`.
  void until(std::int64_t now, What what, int stage);

  /// A batch waited for `item` from its own last known moment until `now`, when it came: what the item did in
  /// that time, the batch did. What the item had not begun by then is charged to the first stage, which was
  /// at older items.
  void wait_for(const Trail& item, std::int64_t now, int stage);

  /// What the time from `asked` until `now` was spent on; all of it is charged. After the last known moment:
  /// handed over. `operators`: the recorded id of each stage, -1 where there is none.
  metrics::WaitCharges charges(std::int64_t asked, std::int64_t now, std::span<const int> operators) const;

 private:
  struct Part {
    std::int64_t until_ns;
    What what;
    std::int16_t stage;
  };
  /// Parts of one batch; beyond them neighbours are merged, the longer one names both.
  static constexpr std::size_t kMostParts = 4096;

  void thin_out();

  std::int64_t began_ns_;
  std::vector<Part> parts_;
};

}  // namespace headrace::pipeline
