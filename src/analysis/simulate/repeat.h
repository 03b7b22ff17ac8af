// A simulated run, repeated: its mean, and what runs of the same loader differ by.
#pragma once

#include "headrace/analysis/simulate/network_run.h"

namespace headrace::analysis {

struct Repeated {
  SimulatedRun mean;
  double spread = 0;  ///< of one run's step, relative
};

/// All runs together, those of works drawn again among them, give what runs differ by.
Repeated repeat(const Network& network);

/// The mean step of the same network with more cores; that of `held` where it has no more.
double step_with_cores(Network network, double cores, double held_s);

}  // namespace headrace::analysis
