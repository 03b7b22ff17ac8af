#include "model_of.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "operator_kinds.h"

namespace headrace::loader_files {
namespace {

using profile::LoaderBuffer;
using profile::LoaderParameter;
using profile::LoaderStage;
using profile::Quantity;

constexpr std::int64_t kUsualWorkers = 8;
constexpr std::int64_t kUsualPrefetch = 16;

class Modeller {
 public:
  Modeller(const RankFiles& files, profile::Profile& profile, const std::vector<int>& group)
      : files_(files), profile_(profile), group_(group) {}

  void build() {
    model_.framework = "mindspore";
    add_stages();
    add_buffers();
    add_workers();
    add_prefetch();
    add_sink_mode();
    profile_.model = std::move(model_);
    const bool sink_mode = files_.in_sink_mode();
    if (sink_mode || files_.dataset_iterator)
      profile_.settings.push_back({"dataset_sink_mode", sink_mode ? "True" : "False"});
  }

 private:
  /// -1 for what runs in the loop.
  int stage_of(int op) const { return op < 0 ? -1 : stage_of_[static_cast<std::size_t>(op)]; }

  void add_stages() {
    stage_of_.assign(profile_.operators.size(), -1);
    for (std::size_t i = 0; i < profile_.operators.size(); ++i) {
      if (group_[i] != static_cast<int>(i)) continue;
      LoaderStage stage;
      stage.name = profile_.operators[i].name;
      for (std::size_t k = 0; k < profile_.operators.size(); ++k) {
        if (group_[k] != static_cast<int>(i)) continue;
        stage.operators.push_back(static_cast<int>(k));
        stage_of_[k] = static_cast<int>(model_.stages.size());
      }
      stage.workers = profile_.operators[i].workers;
      stage.runs_in = profile_.operators[i].executor == profile::Executor::process ? profile::RunsIn::process
                                                                                   : profile::RunsIn::thread;
      model_.stages.push_back(std::move(stage));
    }
  }

  void add_buffers() {
    for (const profile::QueueProfile& queue : profile_.queues) {
      LoaderBuffer buffer;
      buffer.from = queue.from_operators.empty() ? -1 : stage_of(queue.from_operators.front());
      buffer.to = queue.to_operators.empty() ? -1 : stage_of(queue.to_operators.front());
      buffer.capacity = queue.capacity;
      model_.buffers.push_back(buffer);
    }
  }

  /// Cores for each rank of the folder: the ranks of a host share them. Empty where they are not known.
  std::optional<double> most_workers(int now) const {
    if (profile_.host.cores <= 0) return std::nullopt;
    const int each = profile_.host.cores / std::max(1, files_.ranks_beside);
    return std::max({1, now, each});
  }

  static bool computes_in_threads(const profile::OperatorProfile& op) {
    constexpr double kComputes = 0.5;  // of its busy time
    return op.executor == profile::Executor::thread && op.cpu_s && op.busy_s > 0 &&
           *op.cpu_s > kComputes * op.busy_s;
  }

  void add_workers() {
    if (!files_.pipeline) return;
    for (const PipelineOperator& op : files_.pipeline->operators) {
      const auto found =
          std::find_if(profile_.operators.begin(), profile_.operators.end(),
                       [&](const profile::OperatorProfile& each) { return each.name == op.name(); });
      if (found == profile_.operators.end() || !op.workers || *op.workers < 1 || !op.queue ||
          !runs_in_parallel(op.type))
        continue;
      const int index = static_cast<int>(found - profile_.operators.begin());
      LoaderParameter workers;
      workers.name = found->name + ".num_parallel_workers";
      workers.value = std::int64_t{*op.workers};
      workers.usual = kUsualWorkers;
      workers.min = 1;
      workers.max = most_workers(*op.workers);
      workers.sets = Quantity::workers;
      workers.stage = stage_of(index);
      const std::string_view type = plain_type(op.type);
      if (type == "Generator") {
        workers.set_in =
            "GeneratorDataset runs in parallel only where its source can be read at any place (__getitem__ "
            "and __len__); an iterator stays in one thread";
      } else if ((type == "Map" || type == "Batch") && computes_in_threads(*found)) {
        workers.set_in =
            "threads that run a Python function share one interpreter lock: for such a function set "
            "python_multiprocessing=True as well";
      }
      found->parameters.push_back({workers.name, static_cast<double>(*op.workers), workers.min, workers.max,
                                   false, Quantity::workers});
      if (workers.stage >= 0)
        model_.stages[static_cast<std::size_t>(workers.stage)].widened_by = workers.name;
      model_.parameters.push_back(workers);
      if (found->executor == profile::Executor::thread &&
          (type == "Map" || type == "Batch" || type == "Generator")) {
        LoaderParameter processes;
        processes.name = found->name + ".python_multiprocessing";
        processes.value = false;
        processes.usual = false;
        processes.sets = Quantity::executor;
        processes.stage = workers.stage;
        model_.parameters.push_back(std::move(processes));
      }
    }
  }

  /// One setting for all queues, where all have the same capacity.
  void add_prefetch() {
    if (!files_.pipeline || files_.pipeline->has_queues_per_worker()) return;
    std::int64_t capacity = 0;
    for (const profile::QueueProfile& queue : profile_.queues) {
      if (queue.name == "data queue") continue;
      if (queue.capacity <= 0 || (capacity > 0 && queue.capacity != capacity)) return;
      capacity = queue.capacity;
    }
    if (capacity <= 0) return;
    LoaderParameter prefetch;
    prefetch.name = "prefetch_size";
    prefetch.value = capacity;
    prefetch.usual = kUsualPrefetch;
    prefetch.min = 1;
    prefetch.sets = Quantity::capacity;
    prefetch.set_in = "ds.config.set_prefetch_size sets it for all operators";
    for (std::size_t q = 0; q < profile_.queues.size(); ++q) {
      if (profile_.queues[q].name == "data queue") continue;
      profile_.queues[q].parameters.push_back(
          {prefetch.name, static_cast<double>(capacity), prefetch.min, {}, false, Quantity::capacity});
      model_.buffers[q].set_by = prefetch.name;
    }
    model_.parameters.push_back(std::move(prefetch));
  }

  /// On a CPU alone it changes nothing, so it is a parameter only where a device ran.
  void add_sink_mode() {
    if (files_.in_sink_mode() || !files_.dataset_iterator || !files_.has_device) return;
    LoaderParameter ahead;
    ahead.name = "dataset_sink_mode";
    ahead.value = false;
    ahead.usual = false;
    ahead.sets = Quantity::copies_ahead;
    ahead.set_in = "set it where the model is trained: model.train(..., dataset_sink_mode=True)";
    model_.parameters.push_back(std::move(ahead));
  }

  const RankFiles& files_;
  profile::Profile& profile_;
  const std::vector<int>& group_;
  profile::LoaderModel model_;
  std::vector<int> stage_of_;
};

}  // namespace

void add_model(const RankFiles& files, profile::Profile& profile, const std::vector<int>& group) {
  Modeller(files, profile, group).build();
}

}  // namespace headrace::loader_files
