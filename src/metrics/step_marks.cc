#include "headrace/metrics/step_marks.h"

namespace headrace::metrics {

int StepMarks::join() noexcept {
  constexpr std::uint32_t kAll = (1U << kPlaces) - 1;
  std::uint32_t taken = taken_.load(std::memory_order_relaxed);
  while (taken != kAll) {
    const int place = std::countr_one(taken);
    // Marks left by the listener before are older than any step of this one.
    if (taken_.compare_exchange_weak(taken, taken | 1U << place, std::memory_order_relaxed)) {
      forget(place);
      places_[static_cast<std::size_t>(place)].thread.store(this_thread(), std::memory_order_relaxed);
      return place;
    }
  }
  return kNoPlace;
}

void StepMarks::leave(int place) noexcept { taken_.fetch_and(~(1U << place), std::memory_order_relaxed); }

StepMarks::Heard StepMarks::heard(int place) const noexcept {
  const Place& mine = places_[static_cast<std::size_t>(place)];
  return {mine.forward.load(std::memory_order_relaxed), mine.backward.load(std::memory_order_relaxed),
          mine.update.load(std::memory_order_relaxed)};
}

}  // namespace headrace::metrics
