// How long things took, over many calls. Declared as figure.h says; part of profile.h.
#pragma once

#include <cstdint>

#include "headrace/profile/figure.h"

namespace headrace::profile {

struct Latency {
  std::uint64_t count = 0;
  double mean_s = 0;
  double p50_s = 0;
  double p90_s = 0;
  double p99_s = 0;
  double max_s = 0;
};

constexpr About about(Of<Latency>) {
  return {"Latency",
          "How long something took, over many calls. Mean and maximum are exact, quantiles are within 1/16."};
}
template <class Visit>
constexpr void figures_of(Of<Latency>, Visit&& figure) {
  figure("count", &Latency::count, {"Calls."});
  figure("mean_s", &Latency::mean_s, {"Mean. Far above the median: a few slow calls make up the time."});
  figure("p50_s", &Latency::p50_s, {"Median: half of the calls were faster."});
  figure("p90_s", &Latency::p90_s, {"Nine in ten were faster."});
  figure("p99_s", &Latency::p99_s,
         {"99 in 100 were faster. Far above the median: look at the slowest items."});
  figure("max_s", &Latency::max_s, {"The slowest call."});
}

}  // namespace headrace::profile
