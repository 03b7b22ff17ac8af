// Bytes as the operations of a job, and as step tables of its ranks: simulated and judged, or refused. Times are
// finite, shares between 0 and 1.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "demand.h"
#include "headrace/analysis/cluster/heat_map.h"
#include "headrace/analysis/cluster/slow_ranks.h"
#include "headrace/analysis/job/simulation.h"
#include "headrace/profile/errors.h"

namespace {

using namespace headrace::analysis;
using headrace::demand;

constexpr std::size_t kRow = 9;
constexpr std::size_t kMaxRows = 2000;

/// Mostly small numbers; some bytes are what no clock gives.
double time_of(std::uint8_t byte) {
  if (byte == 0xff) return NAN;
  if (byte == 0xfe) return INFINITY;
  if (byte == 0xfd) return 1e300;
  return byte * 0.25;
}

job::Operations operations_of(const std::uint8_t* data, std::size_t rows) {
  job::Operations operations;
  for (std::size_t i = 0; i < rows; ++i, data += kRow) {
    job::Operation one;
    one.type = static_cast<job::OperationType>(data[0] % job::kOperationTypes);
    one.dp_rank = data[1] % 4;
    one.stage = data[1] / 4 % 4;
    one.step = data[2] % 3;
    one.start_s = time_of(data[3]);
    one.duration_s = time_of(data[4]);
    one.sequence = data[5];
    one.chunk = data[6] % 4 - 1;
    one.model_chunk = data[7] % 6 - 1;
    one.micro_batch = data[8] % 5 - 1;
    one.kernel = data[8] / 5 % 4 - 1;
    operations.push_back(one);
  }
  return operations;
}

void simulate(job::Operations operations) {
  try {
    const job::JobSimulation simulation(std::move(operations));
    for (const auto& steps : {simulation.recorded_s(), simulation.step_s(job::Selection::all()),
                              simulation.step_s(job::Selection::none(), job::Delays::without_input),
                              simulation.step_s({.stage = 1})}) {
      demand(steps.size() == simulation.steps().size(), "a time for each step");
      for (const double each : steps) demand(std::isfinite(each) && each >= 0, "a step is a time");
    }
  } catch (const headrace::UsageError&) {
  }
}

void judge(const std::uint8_t* data, std::size_t rows) {
  std::vector<cluster::RankSteps> ranks(6);
  for (std::size_t i = 0; i < rows; ++i, data += kRow) {
    cluster::RankSteps& rank = ranks[data[0] % ranks.size()];
    rank.rank = data[0] % 7;
    rank.step.push_back(data[2]);
    if (data[1] != 0) rank.total_s.push_back(time_of(data[3]));
    rank.own_s.push_back(time_of(data[4]));
  }
  const cluster::SlowRanks found = cluster::slow_ranks(ranks);
  demand(found.gain_share >= 0 && found.gain_share <= 1 + 1e-9, "the gain is a share");
  for (const cluster::SlowRank& slow : found.slow)
    demand(slow.late_share >= 0 && slow.late_share <= 1, "the late steps are a share");
  demand(found.ranks.size() == ranks.size(), "a row for each rank");
  const cluster::HeatMap map = cluster::heat_map(ranks, {.most_rows = 3, .most_columns = 5});
  demand(map.rows.size() <= 3 && map.columns.size() <= 5, "the map is small");
  demand(map.late_share.size() == map.rows.size() * map.columns.size(), "a value for each field");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::size_t rows = std::min(size / kRow, kMaxRows);
  simulate(operations_of(data, rows));
  judge(data, rows);
  return 0;
}
