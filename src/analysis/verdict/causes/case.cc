#include <algorithm>
#include <cmath>

#include "../../read/own_compute.h"
#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/verdict/causes/cause.h"

namespace headrace::analysis {

bool Case::waits_for_unseen() const noexcept {
  if ((loader && loader->workers > 0) || candidate < 0 || !profile.queues.empty()) return false;
  const SegmentDemand* segment = demand.of(candidate);
  if (segment == nullptr || (segment->operators.size() != 1 && !loader)) return false;
  const double computes = cpu_bound_share(op());
  const bool is_whole = op().in_sink && (loader || op().fidelity == profile::Fidelity::inclusive);
  // Samples of the stack inside next() say so. Receiving takes some CPU time, too.
  if (is_whole && !setting(profile, kWaitsFor).empty()) return computes < kMostOf;
  if (loader) return false;
  // A generator (its parameter is prefetch) may wait for a server or a disk itself. Where threads that nobody recorded
  // compute meanwhile, beside a step that does not, it more likely waits for them.
  const bool elsewhere = op().parameters.empty() || (sleeps(profile.sink) && pool_cpu_s(profile) > 0);
  return is_whole && elsewhere && computes >= 0 && computes < kMostOf;
}

double Case::spread_per_batch() const noexcept {
  return shapes[static_cast<std::size_t>(candidate)].cv / std::sqrt(std::max(1.0, op().items_per_batch));
}

bool Case::rate_bound() const noexcept {
  if (!intermittent && interventions.gains(candidate))
    return interventions.gain_of_evenness() < kMostOf * interventions.gain_of_all();
  return pressure >= thresholds.rate.too_slow;
}

bool Case::held_up_by(double share) const {
  if (share <= 0) return false;
  const Change shorter{Change::Kind::kService, candidate, 1, 1 - std::min(share, 1.0)};
  const Prediction then = interventions.gains(candidate) ? predictor.predict({shorter}) : Prediction{};
  if (!then.known) return share >= kMostOf;
  return interventions.gain_of(then.step_s) >= kMostOf * interventions.gain(candidate);
}

}  // namespace headrace::analysis
