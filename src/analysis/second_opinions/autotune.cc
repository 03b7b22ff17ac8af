#include "headrace/analysis/second_opinions/autotune.h"

#include <algorithm>
#include <cmath>

namespace headrace::analysis {
namespace {

using loader_files::PipelineOperator;

// Its constants.
constexpr double kConnector = 0.75;
constexpr double kFarApart = 0.35;
constexpr double kInputLow = 0.5;
constexpr double kAddsWorkersAbove = 75;
constexpr double kLengthensQueueBelow = 35;
constexpr std::int64_t kMoreWorkers = 2;
constexpr std::int64_t kLongerQueue = 4;
constexpr std::int64_t kLongestQueue = 128;

/// Mean level of the host queue / its mean capacity.
std::optional<double> connector_utilisation(const loader_files::RankFiles& files) {
  const loader_files::BatchRecords* batches = files.batches();
  if (batches == nullptr) return std::nullopt;
  double level = 0;
  double capacity = 0;
  for (const loader_files::BatchRecord& each : batches->batches) {
    if (!each.level || !each.capacity) continue;
    level += static_cast<double>(*each.level);
    capacity += static_cast<double>(*each.capacity);
  }
  if (capacity <= 0) return std::nullopt;
  return level / capacity;
}

std::optional<double> output_utilisation(const PipelineOperator& op) {
  if (!op.queue || op.queue->capacity <= 0 || op.queue->levels.empty()) return std::nullopt;
  double sum = 0;
  for (const std::int32_t level : op.queue->levels) sum += level;
  return sum / static_cast<double>(op.queue->levels.size()) / static_cast<double>(op.queue->capacity);
}

double cpu_of(const loader_files::RankFiles& files, std::int64_t id) {
  if (!files.cpu) return 0;
  for (const auto& [of, values] : files.cpu->raw_operators) {
    if (of != id || values.empty()) continue;
    double sum = 0;
    for (const double value : values) sum += std::isfinite(value) ? value : 0;
    return sum / static_cast<double>(values.size());
  }
  return 0;
}

/// Leaves whose source cannot be divided among workers.
bool is_left_alone(const PipelineOperator& op) { return op.children.empty() || op.type == "GeneratorOp"; }

}  // namespace

std::string AutoTuneRequest::text() const {
  return type + "(ID:" + std::to_string(id) + ") " + (workers ? "num_parallel_workers" : "prefetch_size") +
         " " + std::to_string(from) + " -> " + std::to_string(to);
}

AutoTuneRound autotune_round(const loader_files::RankFiles& files) {
  AutoTuneRound round;
  round.connector_utilisation = connector_utilisation(files);
  round.is_bottleneck = round.connector_utilisation && *round.connector_utilisation < kConnector;
  if (!round.is_bottleneck || !files.pipeline) return round;
  std::vector<const PipelineOperator*> operators;
  for (const PipelineOperator& op : files.pipeline->operators) operators.push_back(&op);
  std::stable_sort(operators.begin(), operators.end(),
                   [](const PipelineOperator* a, const PipelineOperator* b) { return a->id > b->id; });
  const int most = files.cpu && files.cpu->cores ? *files.cpu->cores : 0;
  double previous = 1;  // what the operator of the next higher id leaves; a leaf has all it wants
  for (const PipelineOperator* op : operators) {
    const double in = op->children.empty() ? 1 : previous;
    const std::optional<double> out = output_utilisation(*op);
    previous = out.value_or(previous);
    const int workers = op->workers.value_or(0);
    if (!out || workers <= 0 || is_left_alone(*op)) continue;
    const double cpu = cpu_of(files, op->id) / workers;
    const double diff = in - *out;
    std::int64_t requested = workers;
    if (diff > kFarApart || cpu > kAddsWorkersAbove) {
      requested = workers + kMoreWorkers;
      if (most > 0) requested = std::max<std::int64_t>(workers, std::min<std::int64_t>(requested, most));
      round.requests.push_back({op->id, op->type, true, workers, requested});
    }
    if (cpu < kLengthensQueueBelow && (in < kInputLow || -diff > kFarApart)) {
      const std::int64_t now = op->queue->capacity;
      const std::int64_t to = std::min(kLongestQueue, std::max(now + kLongerQueue, requested));
      round.requests.push_back({op->id, op->type, false, now, to});
    }
  }
  return round;
}

}  // namespace headrace::analysis
