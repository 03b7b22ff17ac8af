// Which items of a source are followed.
#pragma once

#include <cstdint>

#include "headrace/metrics/clock.h"

namespace headrace::pipeline {

/// Following an item costs some 100 ns along its way: nothing beside a file read, much beside an increment.
/// So every item of a slow source is followed, and one in 32 of one that makes more than half a million a
/// second. Single thread.
class Pace {
 public:
  bool follows_next() noexcept {
    if (++in_group_ == kGroup) look();
    return slow_ || in_group_ % 32 == 0;
  }

 private:
  static constexpr int kGroup = 128;
  static constexpr std::int64_t kFastGroupNs = kGroup * 2'000;

  void look() noexcept {
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
