// The thresholds by name, to be moved one by one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "headrace/analysis/read/thresholds.h"

namespace headrace::analysis {

/// Calls `visit(name, value)` for each threshold.
template <class Visit>
void each_threshold(Thresholds& all, Visit&& visit) {
  visit("gate.fewest_steps", all.gate.fewest_steps);
  visit("gate.shortest_s", all.gate.shortest_s);
  visit("gate.starved_share", all.gate.starved_share);
  visit("gate.served_share", all.gate.served_share);
  visit("gate.opaque_handoff_s", all.gate.opaque_handoff_s);
  visit("lock.busy_threads", all.lock.busy_threads);
  visit("lock.taken_share", all.lock.taken_share);
  visit("lock.off_cpu_share", all.lock.off_cpu_share);
  visit("lock.computes_share", all.lock.computes_share);
  visit("lock.waits_share", all.lock.waits_share);
  visit("lock.without_lock", all.lock.without_lock);
  visit("candidate.queue_is_high", all.candidate.queue_is_high);
  visit("candidate.fewest_samples", all.candidate.fewest_samples);
  visit("rate.too_slow", all.rate.too_slow);
  visit("phases.fewest_phases", all.phases.fewest_phases);
  visit("phases.drift", all.phases.drift);
  visit("phases.against", all.phases.against);
  visit("phases.noise", all.phases.noise);
  visit("phases.slower", all.phases.slower);
  visit("phases.calm_busy_share", all.phases.calm_busy_share);
  visit("tail.most_items", all.tail.most_items);
  visit("tail.most_between", all.tail.most_between);
  visit("tail.waits", all.tail.waits);
  visit("worker.slower", all.worker.slower);
  visit("worker.beyond_chance", all.worker.beyond_chance);
  visit("worker.fewest_items", all.worker.fewest_items);
  visit("cpu.spent", all.cpu.spent);
  visit("cpu.throttled_share", all.cpu.throttled_share);
  visit("remote.refused_share", all.remote.refused_share);
  visit("remote.lost_share", all.remote.lost_share);
  visit("remote.load_exponent", all.remote.load_exponent);
  visit("remote.load_error", all.remote.load_error);
  visit("remote.load_spread", all.remote.load_spread);
  visit("remote.cold_ratio", all.remote.cold_ratio);
  visit("shared_lock.lock_share", all.shared_lock.lock_share);
  visit("oversubscribed.elsewhere_share", all.oversubscribed.elsewhere_share);
  visit("pinned.queueing_share", all.pinned.queueing_share);
  visit("memory.pressure_share", all.memory.pressure_share);
  visit("shards.out_of_data_share", all.shards.out_of_data_share);
  visit("risk.shared_memory_share", all.risk.shared_memory_share);
  visit("risk.memory_left_s", all.risk.memory_left_s);
  visit("risk.stuck_s", all.risk.stuck_s);
  visit("risk.stuck_times", all.risk.stuck_times);
  visit("risk.startup_s", all.risk.startup_s);
  visit("risk.startup_share", all.risk.startup_share);
  visit("risk.collection_share", all.risk.collection_share);
  visit("stall.least_s", all.stall.least_s);
  visit("stall.next", all.stall.next);
  visit("stall.worth_s", all.stall.worth_s);
  visit("pauses.times_as_long", all.pauses.times_as_long);
  visit("pauses.of_time", all.pauses.of_time);
  visit("pauses.most_steps", all.pauses.most_steps);
  visit("pauses.fewest", all.pauses.fewest);
  visit("pauses.uneven", all.pauses.uneven);
}

inline std::vector<std::string> threshold_names() {
  std::vector<std::string> names;
  Thresholds all;
  each_threshold(all, [&](const char* name, double) { names.emplace_back(name); });
  return names;
}

/// `wanted` times `factor`; the others as they are.
inline Thresholds moved(const std::string& wanted, double factor) {
  Thresholds all;
  each_threshold(all, [&](const char* name, double& value) { value *= name == wanted ? factor : 1; });
  return all;
}

}  // namespace headrace::analysis
