#include "report/profiles.h"
#include "support/simulation/dataloader_model.h"

#include <string>
#include <utility>
#include <vector>

#include "headrace/profile/profile_json.h"

namespace headrace::report {

using profile::Profile;

Profile decode_limits() {
  Profile profile;
  profile.loader = "train_loader";
  profile.epochs = 2;
  profile.elapsed_s = 40;
  profile.startup.first_batch_s = 1.5;
  profile.sink.steps = 1001;
  profile.sink.step_s = 0.04;
  profile.sink.compute_s = 0.01;
  profile.sink.wait_share = profile.sink.starved_share = 0.75;
  profile.sink.getnext_wait = {1000, 0.03, 0.03, 0.031, 0.032, 0.033};
  profile.sink.longest_waits = {{1, 0.033, 2}, {2, 0.033, 3}, {3, 0.032, 4}, {3, 0.032, 4}};
  for (const char* name : {"read", "decode", "batch"}) {
    profile::OperatorProfile op;
    op.name = name;
    const bool slow = op.name == "decode";
    op.kind = op.name == "read" ? "source" : op.name == "batch" ? "batch" : "map";
    op.items = 1000;
    op.items_per_batch = 1;
    op.demand_s = slow ? 0.04 : 0.002;
    op.busy_s = 1000 * op.demand_s;
    op.states = slow ? profile::States{1, 0, 0, 0} : profile::States{0.05, 0.4, 0.55, 0};
    op.service = {1000, op.demand_s, op.demand_s, op.demand_s, op.demand_s, op.demand_s};
    op.fidelity = "exact";
    op.executor = "thread";
    if (slow) op.parameters = {{"decode.workers", 1, 1.0, {}, false, profile::Quantity::workers}};
    profile.operators.push_back(op);
  }
  const auto queue = [&](const char* name, const char* from, const char* to, std::vector<double> occupancy) {
    profile::QueueProfile q;
    q.name = name;
    q.from = from;
    q.to = to;
    q.capacity = 2;
    q.mean = occupancy[1] + 2 * occupancy[2];
    q.empty_share = occupancy[0];
    q.full_share = occupancy[2];
    q.occupancy = std::move(occupancy);
    profile.queues.push_back(q);
  };
  queue("raw", "read", "decode", {0, 0.05, 0.95});
  queue("decoded", "decode", "batch", {0.9, 0.1, 0});
  queue("ready", "batch", "sink", {0.95, 0.05, 0});
  profile::find_queue_ends(profile);
  profile.stall_ledger = {{"in_service", "decode", 28, 0.93}, {"unknown", "", 2, 0.07}};
  profile.host.cores = 4;
  profile.host.cpu_share = 0.1;
  return profile;
}

Profile healthy() {
  Profile profile = decode_limits();
  profile.sink.compute_s = 0.0396;
  profile.sink.wait_share = profile.sink.starved_share = 0.01;
  profile.operators[1].demand_s = 0.02;
  return profile;
}

Profile in_workers(int workers) {
  Profile profile = decode_limits();
  simulation::describe({.parts = {}, .num_workers = 24, .batch_size = 8, .stream = true, .pin_s = 1e-3},
                       profile);
  for (profile::OperatorProfile& op : profile.operators) {
    op.workers = workers;
    op.segment = 0;
    for (int w = 0; w < workers; ++w) {
      profile::WorkerProfile worker;
      worker.worker_id = w;
      worker.shard = std::to_string(w + 1) + " of " + std::to_string(workers);
      worker.items = 40;
      worker.busy_s = op.name == "decode" ? 1.0 + 0.1 * w : 0.04;
      worker.cpu_s = 0.5 * worker.busy_s;
      worker.states.busy = op.name == "decode" ? 0.9 : 0.01;
      op.per_worker.push_back(worker);
    }
  }
  for (int w = 0; w < workers; ++w) {
    profile::QueueProfile index = profile.queues.front();
    index.name = "index[" + std::to_string(w) + "]";
    index.from = "";
    index.from_operators = {};
    index.to = "read";
    index.to_operators = {0};
    index.mean = w % 2;
    profile.queues.push_back(index);
  }
  profile.stall_ledger = {{"in_service", "decode", 10, 0.33},
                          {"waiting_for_worker", "decode", 10, 0.33},
                          {"order", "decode", 10, 0.33}};
  profile.handoff = profile::Handoff{};
  profile.handoff->batches = 1000;
  profile.handoff->message_bytes = 6.4e7;
  profile.handoff->tensors = 1;
  profile.handoff->receive_s = 0.002;
  profile.handoff->receive_cpu_s = 0.001;
  profile.handoff->unused_batches = 3;
  return profile;
}

}  // namespace headrace::report
