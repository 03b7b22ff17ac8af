// The causes: one row each, in the order in which they are tried. A row says everything about a cause that
// the rules around it ask for; nothing else compares causes with each other.
#include <algorithm>
#include <array>
#include <cmath>

#include "../../read/own_compute.h"
#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/verdict/causes/cause.h"

namespace headrace::analysis {

std::optional<Finding> judge_startup(const Case& facts);
std::optional<Finding> judge_transient_stall(const Case& facts);
std::optional<Finding> judge_pauses(const Case& facts);
std::optional<Finding> judge_alternating(const Case& facts);
std::optional<Finding> judge_slow_worker(const Case& facts);
std::optional<Finding> judge_slow_rank(const Case& facts);
std::optional<Finding> judge_memory_pressure(const Case& facts);
std::optional<Finding> judge_remote_storage(const Case& facts);
std::optional<Finding> judge_storage_bound(const Case& facts);
std::optional<Finding> judge_shared_resource(const Case& facts);
std::optional<Finding> judge_gc_pause(const Case& facts);
std::optional<Finding> judge_slow_samples(const Case& facts);
std::optional<Finding> judge_gil_contention(const Case& facts);
std::optional<Finding> judge_oversubscribed(const Case& facts);
std::optional<Finding> judge_pinned(const Case& facts);
std::optional<Finding> judge_cpu_saturated(const Case& facts);
std::optional<Finding> judge_shard_imbalance(const Case& facts);
std::optional<Finding> judge_handoff(const Case& facts);
std::optional<Finding> judge_transfer(const Case& facts);
std::optional<Finding> judge_variance(const Case& facts);
std::optional<Finding> judge_no_overlap(const Case& facts);
std::optional<Finding> judge_serial_operator(const Case& facts);
std::optional<Finding> judge_too_few_workers(const Case& facts);

namespace {

constexpr std::array<CauseRule, names_of(Cause{}).size()> kRules{{
    {.cause = Cause::startup,
     .judge = judge_startup,
     .otherwise_healthy = true,
     .judged_when_served = true,
     .judged_when_loop_waits_for_core = true},
    {.cause = Cause::transient_stall,
     .judge = judge_transient_stall,
     .otherwise_healthy = true,
     .judged_when_served = true,
     .judged_when_loop_waits_for_core = true},
    {.cause = Cause::pauses, .judge = judge_pauses, .otherwise_healthy = true},
    {.cause = Cause::alternating, .judge = judge_alternating, .moves_between_operators = true},
    {.cause = Cause::slow_worker, .judge = judge_slow_worker},
    {.cause = Cause::slow_rank, .judge = judge_slow_rank},
    {.cause = Cause::memory_pressure, .judge = judge_memory_pressure},
    {.cause = Cause::remote_storage, .judge = judge_remote_storage},
    {.cause = Cause::storage_bound, .judge = judge_storage_bound},
    {.cause = Cause::shared_resource, .judge = judge_shared_resource},
    {.cause = Cause::gc_pause, .judge = judge_gc_pause},
    {.cause = Cause::slow_samples, .judge = judge_slow_samples, .same_in_every_window = true},
    {.cause = Cause::gil_contention,
     .judge = judge_gil_contention,
     .same_in_every_window = true,
     .found_without_demand = true},
    {.cause = Cause::oversubscribed, .judge = judge_oversubscribed, .judged_when_loop_waits_for_core = true},
    {.cause = Cause::pinned, .judge = judge_pinned},
    {.cause = Cause::cpu_saturated, .judge = judge_cpu_saturated, .judged_when_loop_waits_for_core = true},
    {.cause = Cause::shard_imbalance, .judge = judge_shard_imbalance},
    {.cause = Cause::handoff, .judge = judge_handoff, .judged_when_served = true},
    {.cause = Cause::transfer, .judge = judge_transfer, .judged_when_served = true},
    {.cause = Cause::variance, .judge = judge_variance, .same_in_every_window = true},
    {.cause = Cause::no_overlap, .judge = judge_no_overlap, .found_without_demand = true},
    {.cause = Cause::serial_operator, .judge = judge_serial_operator, .judged_when_served = true},
    {.cause = Cause::too_few_workers, .judge = judge_too_few_workers},
}};

constexpr bool rows_are_in_order() {
  for (std::size_t i = 0; i < kRules.size(); ++i) {
    if (kRules[i].cause != static_cast<Cause>(i)) return false;
  }
  return true;
}
static_assert(rows_are_in_order(), "every Cause has its row, in the enum's order");

}  // namespace

std::span<const CauseRule> causes_in_order() { return kRules; }

const CauseRule& rule_of(Cause cause) { return kRules[static_cast<std::size_t>(cause)]; }

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
