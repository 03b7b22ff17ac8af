// How services vary, and how a recorder blurs what happened.
#include <algorithm>
#include <cmath>

#include "support/simulation/line.h"

namespace headrace::simulation {

Factor jitter(double spread) {
  return [spread](std::uint64_t, Random& random) {
    return std::uniform_real_distribution<>(1 - spread, 1 + spread)(random);
  };
}

Factor exponential() {
  return [](std::uint64_t, Random& random) { return std::exponential_distribution<>(1)(random); };
}

Factor normal(double deviation) {
  return [deviation](std::uint64_t, Random& random) {
    return std::max(0.05, std::normal_distribution<>(1, deviation)(random));
  };
}

Factor rare(double share, double times) {
  return [share, times](std::uint64_t, Random& random) {
    return std::uniform_real_distribution<>(0, 1)(random) < share ? times : 1.0;
  };
}

Factor once(std::uint64_t at, double times) {
  return [at, times](std::uint64_t item, Random& random) {
    return item == at ? times : std::uniform_real_distribution<>(0.95, 1.05)(random);
  };
}

Factor in_turn(std::uint64_t length, double slow, double fast, bool fast_first) {
  return [=](std::uint64_t item, Random&) { return (item / length % 2 == 0) == fast_first ? fast : slow; };
}

profile::Profile blurred(profile::Profile profile, std::uint64_t seed) {
  Random random(seed);
  const auto about = [&](double spread) {
    return std::uniform_real_distribution<>(1 - spread, 1 + spread)(random);
  };
  for (profile::OperatorProfile& op : profile.operators) {
    if (op.cpu_s) op.cpu_s = std::min(op.busy_s, *op.cpu_s * about(0.1));
    if (seed % 3 == 0) op.run_queue_wait_s.reset();
    if (op.lock_wait_s) op.lock_wait_s = std::min(op.busy_s, *op.lock_wait_s * about(0.2));
    if (op.lock_held_s) op.lock_held_s = std::min(op.busy_s, *op.lock_held_s * about(0.2));
    if (seed % 2 == 0) op.lock_held_s.reset();  // as in Python 3.10
    op.demand_s *= about(0.015);
    for (double* quantile : {&op.service.p50_s, &op.service.p90_s, &op.service.p99_s})
      *quantile *= about(0.06);
    for (profile::WorkerProfile& worker : op.per_worker) {
      for (double* quantile : {&worker.service.p50_s, &worker.service.p90_s, &worker.service.p99_s})
        *quantile *= about(0.06);
      if (worker.sequence.size() > 64)
        worker.sequence.erase(worker.sequence.begin(), worker.sequence.end() - 64);
      if (worker.slowest.size() > 4) worker.slowest.resize(4);
    }
  }
  profile::Host& host = profile.host;
  if (host.gil_share) host.gil_share = std::clamp(*host.gil_share + 0.15 * (about(1) - 1), 0.0, 1.0);
  *host.process_cpu_cores *= about(0.05);
  *host.cpu_share *= about(0.04);
  host.foreign_cpu_share = *host.foreign_cpu_share + 0.05 * about(1);
  if (profile.windows.size() > 24) {  // a long run has wide windows
    for (profile::Window& window : profile.windows) window.host = {};
  }
  if (seed % 2 == 0) {
    profile.stall_ledger.clear();
    profile.stall_ledger.push_back({"unknown", "", profile.sink.wait_share * profile.elapsed_s, 1});
  }
  return profile;
}

}  // namespace headrace::simulation
