#include "headrace/analysis/model/network.h"

#include <algorithm>
#include <cmath>

#include "../read/device_lag.h"
#include "../read/numbers.h"
#include "headrace/analysis/read/cores.h"
#include "limits.h"
#include "network_of.h"

namespace headrace::analysis {
namespace {

/// Cycles of all stages in one run.
constexpr double kCyclesPerRun = 6000;
constexpr double kFewestBatchesPerRun = 60;
constexpr double kMaxBatchesPerRun = 200;

double variation_of(const std::vector<WorkSequence>& lanes) {
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (const WorkSequence& lane : lanes) {
    for (const Work& work : lane) {
      sum += work.total_s();
      squares += work.total_s() * work.total_s();
      count += 1;
    }
  }
  const double mean = ratio(sum, count);
  return ratio(std::sqrt(std::max(0.0, ratio(squares, count) - mean * mean)), mean);
}

/// The mean of all lanes, in each.
void level(std::vector<WorkSequence>& lanes) {
  Work sum;
  double count = 0;
  for (const WorkSequence& lane : lanes) {
    for (const Work& work : lane) sum += work;
    count += static_cast<double>(lane.size());
  }
  if (count > 0) lanes.assign(1, {sum * (1 / count)});
}

void draw_blocks(WorkSequence& lane, std::mt19937_64& random) {
  constexpr std::size_t kBlock = 4;
  const WorkSequence from = lane;
  for (std::size_t i = 0; i < lane.size(); i += kBlock) {
    const std::size_t begin = random() % from.size();
    for (std::size_t k = i; k < std::min(i + kBlock, lane.size()); ++k) {
      lane[k] = from[(begin + k - i) % from.size()];
    }
  }
}

}  // namespace

bool Network::Stage::can_keep_order() const noexcept {
  return workers > 1 && outputs.size() == 1 && std::abs(outputs.front().tokens - 1) < 1e-6;
}

double Network::variation() const {
  double most = std::max(variation_of({steps}), variation_of({in_sink}));
  for (const Stage& stage : stages) {
    most = std::max(most, variation_of(stage.lanes) / std::sqrt(std::max(1.0, stage.cycles_per_batch)));
  }
  return most;
}

int Network::batches() const noexcept {
  double cycles = 1;
  for (const Stage& stage : stages) cycles += stage.cycles_per_batch;
  return static_cast<int>(std::clamp(kCyclesPerRun / cycles, kFewestBatchesPerRun, kMaxBatchesPerRun));
}

std::size_t Network::recorded() const noexcept {
  std::size_t longest = std::max(steps.size(), in_sink.size());
  for (const Stage& stage : stages) longest = std::max(longest, stage.lanes.front().size());
  return longest;
}

void Network::make_even() {
  for (Stage& stage : stages) level(stage.lanes);
  for (WorkSequence* sequence : {&steps, &in_sink}) {
    std::vector<WorkSequence> alone{*sequence};
    level(alone);
    *sequence = alone.front();
  }
}

void Network::draw_again(std::mt19937_64& random) {
  for (Stage& stage : stages) {
    for (WorkSequence& lane : stage.lanes) draw_blocks(lane, random);
  }
  draw_blocks(steps, random);
  draw_blocks(in_sink, random);
}

bool make_network(const profile::Profile& profile, const std::vector<Change>& changes, bool ordered,
                  std::uint64_t seed, Network& network) {
  network = Network{};
  if (profile.sink.step_s <= 0 || profile.operators.empty()) return false;
  network.cores = free_cores(profile.host, kMaxWorkers).held;
  network.pool_cpu_s = pool_work_s(profile);
  network.device_s = device_behind_s(profile.sink);
  std::vector<Change> others = changes;
  const auto asked = [&](Change::Kind kind) {
    return std::erase_if(others, [&](const Change& change) { return change.kind == kind; }) > 0;
  };
  const bool even = asked(Change::Kind::kEven);
  const bool cores = asked(Change::Kind::kCores);
  const std::optional<Loader> loader = loader_of(profile);
  const bool made = loader ? network_of_window(profile, *loader, others, seed, network)
                           : network_of_queues(profile, others, ordered, seed, network);
  if (made && even) network.make_even();
  if (cores) network.cores = kMaxWorkers;
  return made;
}

}  // namespace headrace::analysis
