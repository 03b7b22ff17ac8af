#include "recorded.h"

#include <string>

#include "headrace/profile/profile_json.h"

namespace headrace::bench {
namespace {

constexpr int kOperators = 8;
constexpr int kWorkers = 16;
constexpr int kSteps = 2000;
constexpr int kSequence = 256;
constexpr double kCompute_s = 0.010;

/// 0.6 to 1.6, the same in every run: every seventh item takes longer.
double varied(int i) { return i % 7 == 3 ? 1.6 : 0.6 + 0.1 * (i % 6); }

profile::OperatorProfile operator_of(int number, int workers, double item_s) {
  profile::OperatorProfile op;
  op.name = "op" + std::to_string(number);
  op.kind = number == 0 ? "source" : "map";
  op.executor = "thread";
  op.fidelity = "exact";
  op.workers = workers;
  op.items = kSteps;
  op.items_per_batch = 1;
  for (int w = 0; w < workers; ++w) {
    profile::WorkerProfile worker;
    worker.items = static_cast<std::uint64_t>(kSteps / workers);
    for (int i = 0; i < kSequence; ++i) {
      const double wall_s = item_s * varied(i + 5 * w + number);
      worker.sequence.push_back({static_cast<std::uint64_t>(i), wall_s, 0.3 * wall_s});
      worker.busy_s += wall_s * kSteps / workers / kSequence;
    }
    worker.service = {worker.items, item_s, item_s, 1.5 * item_s, 1.6 * item_s, 1.6 * item_s};
    op.busy_s += worker.busy_s;
    op.per_worker.push_back(std::move(worker));
  }
  op.cpu_s = 0.3 * op.busy_s;
  op.run_queue_wait_s = 0;
  op.demand_s = op.busy_s / kSteps / workers;
  op.service = {kSteps, item_s, item_s, 1.5 * item_s, 1.6 * item_s, 1.6 * item_s};
  op.states = {0.5, 0.25, 0.25, 0};
  return op;
}

void add_sink(profile::Profile& profile, double step_s) {
  profile.loader = "train";
  profile.sink.steps = kSteps;
  profile.sink.step_s = step_s;
  profile.sink.compute_s = kCompute_s;
  profile.sink.wait_share = profile.sink.starved_share = 1 - kCompute_s / step_s;
  const double wait_s = step_s - kCompute_s;
  profile.sink.getnext_wait = {kSteps - 1, wait_s, wait_s, wait_s, wait_s, wait_s};
  for (int i = 0; i < kSequence; ++i) profile.sink.sequence.push_back({wait_s, kCompute_s});
  profile.elapsed_s = step_s * kSteps;
  profile.host.cores = 16;
  profile.host.cpu_share = 0.3;
}

}  // namespace

profile::Profile recorded_pipeline() {
  profile::Profile profile;
  for (int number = 0; number < kOperators; ++number) {
    profile.operators.push_back(operator_of(number, kWorkers / kOperators, number == 3 ? 0.04 : 0.012));
    profile.operators.back().segment = number;
    profile::QueueProfile queue;
    queue.name = "queue" + std::to_string(number);
    queue.from = profile.operators.back().name;
    queue.to = number + 1 < kOperators ? "op" + std::to_string(number + 1) : "sink";
    queue.capacity = 4;
    const bool before = number < 3;
    queue.occupancy =
        before ? std::vector<double>{0, 0, 0, 0.1, 0.9} : std::vector<double>{0.9, 0.1, 0, 0, 0};
    queue.mean = before ? 3.9 : 0.1;
    queue.empty_share = before ? 0 : 0.9;
    queue.full_share = before ? 0.9 : 0;
    profile.queues.push_back(std::move(queue));
  }
  add_sink(profile, profile.operators[3].demand_s);
  profile::find_queue_ends(profile);
  return profile;
}

profile::Profile recorded_loader() {
  profile::Profile profile;
  double batch_s = 0;
  for (int number = 0; number < kOperators; ++number) {
    profile.operators.push_back(operator_of(number, kWorkers, number == 3 ? 0.2 : 0.04));
    profile.operators.back().executor = "process";
    profile.operators.back().segment = 0;
    batch_s += profile.operators.back().demand_s;
  }
  add_sink(profile, batch_s);
  profile.model = profile::loader_model_from_json(
      R"({"framework":"torch","stages":[{"name":"workers","runs_in":"process","gets_work":"in_turn"}],)"
      R"("buffers":[{"from":0,"capacity":2,"is_window":true,"per_worker":true,"set_by":"prefetch_factor"}],)"
      R"("parameters":[{"name":"num_workers","sets":"workers"},{"name":"prefetch_factor","sets":"window"}]})");
  profile::LoaderStage& workers = profile.model->stages.front();
  workers.workers = kWorkers;
  for (int number = 0; number < kOperators; ++number) workers.operators.push_back(number);
  return profile;
}

}  // namespace headrace::bench
