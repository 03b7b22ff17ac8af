// Items of a source that carry an ItemTrace.
#pragma once

#include <cstdint>

#include "headrace/metrics/clock.h"

namespace headrace::pipeline {

/// A trace costs some 100 ns per item over the whole pipeline: nothing beside a file read, much beside an
/// increment. So a slow source traces every item, and a source of more than 500,000 items/s one in 32.
/// Single thread.
class ItemTraceSampler {
 public:
  bool samples_next() noexcept {
    if (++in_group_ == kGroup) measure_rate();
    return slow_ || in_group_ % 32 == 0;
  }

 private:
  static constexpr int kGroup = 128;
  static constexpr std::int64_t kFastGroupNs = kGroup * 2'000;

  void measure_rate() noexcept {
    in_group_ = 0;
    const std::int64_t now = metrics::Clock::now_ns();
    slow_ = began_ns_ == 0 || now - began_ns_ > kFastGroupNs;
    began_ns_ = now;
  }

  int in_group_ = 0;
  std::int64_t began_ns_ = 0;
  bool slow_ = true;
};

}  // namespace headrace::pipeline
