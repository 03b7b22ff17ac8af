#include "long_run.h"

#include <cmath>
#include <string>

namespace headrace::bench {
namespace {

using profile::Profile;

constexpr double kHour_s = 3600;
constexpr double kStep_s = 0.06;
/// As many as a segment keeps of one operator in one worker.
constexpr int kSequence = 40;
constexpr int kSlowest = 8;

/// Figures of all sizes without a random generator: the page's length depends on their digits.
double varied(int i, int j) { return 0.5 + 0.49 * std::sin(1.7 * i + 0.31 * j); }

profile::WorkerProfile worker_of(int op, int number) {
  profile::WorkerProfile worker;
  worker.name = std::to_string(4242 + number) + "/" + std::to_string(4242 + number);
  worker.worker_id = number;
  worker.items = 60'000;
  worker.busy_s = kHour_s * varied(op, number) / kOperators;
  worker.cpu_s = 0.9 * worker.busy_s;
  worker.states = {worker.busy_s / kHour_s, 0.1, 0.8 - worker.busy_s / kHour_s, 0.1};
  const double item_s = worker.busy_s / static_cast<double>(worker.items);
  worker.service = {worker.items, item_s, item_s, 1.5 * item_s, 2 * item_s, 9 * item_s};
  for (int i = 0; i < kSequence; ++i) {
    worker.sequence.push_back({static_cast<std::uint64_t>(i), item_s * varied(i, op), 0.9 * item_s});
    if (i < kSlowest) worker.slowest.push_back({static_cast<std::uint64_t>(7 * i), 9 * item_s, item_s});
  }
  return worker;
}

profile::QueueProfile queue_of(const std::string& name, std::int64_t capacity) {
  profile::QueueProfile queue;
  queue.name = name;
  queue.capacity = capacity;
  queue.occupancy.assign(static_cast<std::size_t>(capacity) + 1, 1.0 / static_cast<double>(capacity + 1));
  queue.mean = 0.5 * static_cast<double>(capacity);
  queue.empty_share = queue.full_share = queue.occupancy.front();
  queue.puts = queue.gets = 60'000;
  return queue;
}

void add_windows(Profile& profile) {
  for (int i = 0; i < kWindows; ++i) {
    profile::Window window;
    window.start_s = kHour_s * i / kWindows;
    window.end_s = kHour_s * (i + 1) / kWindows;
    window.steps = 470;
    window.wait_s = 20 * varied(i, 1);
    window.starved_s = 0.9 * window.wait_s;
    window.compute_s = 28.1 - window.wait_s;
    for (int op = 0; op < kOperators; ++op) window.operators.push_back({varied(i, op), 0.04, 3840});
    for (std::size_t queue = 0; queue < profile.queues.size(); ++queue)
      window.queues.push_back({varied(i, static_cast<int>(queue)), 0.3, 0.2});
    window.host.cpu_share = varied(i, 2);
    profile.windows.push_back(window);
  }
}

}  // namespace

Profile long_run() {
  Profile profile;
  profile.loader = "train_loader";
  profile.settings = {{"batch_size", "64"}, {"num_workers", "64"}, {"prefetch_factor", "2"}};
  profile.epochs = 3;
  profile.elapsed_s = kHour_s;
  profile.startup = {4.2, 3.9, 0.8};
  profile.sink.steps = 60'000;
  profile.sink.step_s = kStep_s;
  profile.sink.compute_s = 0.4 * kStep_s;
  profile.sink.wait_share = 0.6;
  profile.sink.starved_share = 0.55;
  profile.sink.getnext_wait = {59'997, 0.036, 0.035, 0.05, 0.07, 1.2};
  for (int i = 0; i < kSequence; ++i) profile.sink.sequence.push_back({0.036 * varied(i, 3), 0.024});
  for (int i = 0; i < kSlowest; ++i) profile.sink.longest_waits.push_back({40.0 * i, 1.2 - 0.1 * i, 700});
  for (int i = 0; i < kOperators; ++i) {
    profile::OperatorProfile op;
    op.name = i == 0                ? "ImageFolder"
              : i == kOperators - 1 ? "default_collate"
                                    : "Transform" + std::to_string(i);
    op.kind = i == 0 ? "source" : i == kOperators - 1 ? "batch" : "map";
    op.workers = kWorkers;
    op.executor = "process";
    op.fidelity = "exact";
    op.segment = 0;
    op.items = 60'000 * 64;
    op.items_per_batch = i == kOperators - 1 ? 1 : 64;
    op.demand_s = i == 3 ? 0.058 : 0.002;
    op.states = {i == 3 ? 0.9 : 0.02, 0.03, 0.05, 0.02};
    op.parameters = {{"num_workers", kWorkers, 0.0, {}, false, profile::Quantity::workers}};
    for (int worker = 0; worker < kWorkers; ++worker) {
      op.per_worker.push_back(worker_of(i, worker));
      op.busy_s += op.per_worker.back().busy_s;
    }
    op.cpu_s = 0.9 * op.busy_s;
    profile.operators.push_back(std::move(op));
  }
  for (int worker = 0; worker < kWorkers; ++worker) {
    profile.queues.push_back(queue_of("index[" + std::to_string(worker) + "]", 2));
    profile.queues.back().to = "ImageFolder";
  }
  for (const char* name : {"results", "reorder"}) profile.queues.push_back(queue_of(name, 128));
  profile.queues.back().to = "sink";
  for (int i = 0; i < kOperators; ++i)
    profile.stall_ledger.push_back(
        {"in_service", profile.operators[static_cast<std::size_t>(i)].name, 200.0 + i, 0.1});
  profile.host.cores = 64;
  profile.host.cpu_share = 0.8;
  add_windows(profile);
  return profile;
}

}  // namespace headrace::bench
