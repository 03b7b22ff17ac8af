// Place of an item (later: its batch) at every moment since its source began to make it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/metrics/sink_probe.h"

namespace headrace::pipeline {

/// Records what one item went through, so that a wait for it can be charged to whatever delayed it. The trace
/// travels with its item, and one thread has an item at a time.
///
/// Stages count from the source (0). Times are Clock::now_ns(). The parts are contiguous: each begins where
/// the previous one ends.
class ItemTrace {
 public:
  using What = metrics::WaitCharges::What;

  explicit ItemTrace(std::int64_t began) noexcept : began_ns_(began) {}

  std::int64_t began_ns() const noexcept { return began_ns_; }
  /// The end of what has been recorded.
  std::int64_t known_ns() const noexcept { return parts_.empty() ? began_ns_ : parts_.back().until_ns; }

  /// Extends the trace to `now`: since known_ns() the item was in `stage`, doing `what`.
  void until(std::int64_t now, What what, int stage);

  /// Extends the batch's trace to `now` with the trace of the item it waited for. The time before that item
  /// was begun is charged to the first stage, which was busy with older items.
  void wait_for(const ItemTrace& item, std::int64_t now, int stage);

  /// Charges for the time from `asked` to `now`; they sum to all of it. Time after known_ns() is
  /// hand-off. `operators`: the recorded id of each stage, -1 if there is none.
  metrics::WaitCharges charges(std::int64_t asked, std::int64_t now, std::span<const int> operators) const;

 private:
  struct Part {
    std::int64_t until_ns;
    What what;
    std::int16_t stage;
  };
  /// Limit for one batch. Beyond it neighbours are merged, and the longer of the two names the result.
  static constexpr std::size_t kMaxParts = 4096;

  void thin_out();

  std::int64_t began_ns_;
  std::vector<Part> parts_;
};

}  // namespace headrace::pipeline
