#include "reproduction.h"

#include <cstring>

namespace headrace::analysis {

std::string Reproduction::figures_of(const profile::Profile& profile) {
  std::string bytes;
  const auto add = [&bytes](double value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes.append(raw, sizeof raw);
  };
  add(profile.sink.step_s);
  add(profile.sink.compute_s);
  add(profile.sink.compute_cpu_s.value_or(-1));
  add(profile.sink.handoff_floor_s);
  add(static_cast<double>(profile.sink.getnext_wait.count));
  add(static_cast<double>(profile.sink.sequence.size()));
  add(profile.host.cores);
  add(profile.host.cpu_share.value_or(-1));
  add(profile.host.foreign_cpu_share.value_or(-1));
  add(profile.host.foreign_contention_share.value_or(-1));
  add(profile.host.gil_share.value_or(-1));
  if (profile.handoff) {
    for (double value :
         {profile.handoff->receive_s, profile.handoff->receive_cpu_s, profile.handoff->pickle_cpu_s}) {
      add(value);
    }
  }
  for (const profile::Setting& each : profile.settings) bytes += each.parameter + "=" + each.value + ";";
  for (const profile::OperatorProfile& op : profile.operators) {
    bytes += op.name + ";" + op.executor + ";";
    for (double value : {op.demand_s, op.busy_s, op.cpu_s.value_or(-1), op.run_queue_wait_s.value_or(-1),
                         op.items_per_batch, static_cast<double>(op.items), static_cast<double>(op.workers),
                         static_cast<double>(op.per_worker.size())}) {
      add(value);
    }
  }
  for (const profile::QueueProfile& queue : profile.queues) {
    bytes += queue.from + ">" + queue.to + ";";
    for (double value : {static_cast<double>(queue.capacity), static_cast<double>(queue.puts),
                         static_cast<double>(queue.gets)}) {
      add(value);
    }
  }
  return bytes;
}

std::uint64_t seed_of(const profile::Profile& profile) {
  return profile.sink.getnext_wait.count * 2654435761U + 1;
}

}  // namespace headrace::analysis
