#include "headrace/loader_files/profile_of.h"

#include <algorithm>
#include <optional>

#include "file_places.h"
#include "host_of.h"
#include "model_of.h"
#include "operator_kinds.h"
#include "queue_levels.h"
#include "sample_range.h"
#include "sampled_states.h"
#include "sink_of.h"
#include "step_profile.h"
#include "units.h"
#include "windows_of.h"

namespace headrace::loader_files {
namespace {

using profile::Fidelity;
using profile::OperatorProfile;
using profile::QueueProfile;

constexpr std::size_t kFewestSamples = profile::kFewestLevelSamples;
/// Operators beside the process's own time, where they would have to be inside it.
constexpr double kInProcess = 1.1;

class Builder {
 public:
  explicit Builder(const RankFiles& files) : files_(files), range_(steady_samples(files)) {}

  profile::Profile build() {
    profile_.loader = "dataset";
    profile_.rank = files_.rank;
    profile_.finished = true;
    profile_.notes = files_.notes;
    add_notes_of_files();
    add_sink(files_, profile_);
    add_host(files_, profile_);
    if (files_.pipeline) add_operators();
    add_feeder();
    if (files_.pipeline) add_queues();
    add_queues_of_batches();
    if (files_.pipeline) {
      const SampledWork work = add_states(files_, range_, places_, profile_);
      add_windows(files_, range_, places_, work, profile_);
      drop_unknown_work(profile_);
    }
    add_where_it_runs();
    add_model(files_, profile_, group_);
    add_device_steps(files_, profile_);
    return std::move(profile_);
  }

 private:
  void add_notes_of_files() {
    const auto add = [&](const std::vector<std::string>& notes) {
      profile_.notes.insert(profile_.notes.end(), notes.begin(), notes.end());
    };
    if (files_.pipeline) add(files_.pipeline->notes);
    if (const BatchRecords* batches = files_.batches()) add(batches->notes);
    if (files_.getnext) add(files_.getnext->notes);
    if (files_.cpu) add(files_.cpu->notes);
    if (!files_.pipeline)
      profile_.notes.push_back(
          "no operator is known: pipeline_profiling and minddata_pipeline_raw are missing");
    if (files_.pipeline && range_.size() < kFewestSamples) {
      profile_.notes.push_back("the queues were read " + std::to_string(range_.size()) +
                               " times in the steady run; at least " + std::to_string(kFewestSamples) +
                               " are needed to say what an operator did (a shorter monitor sampling interval "
                               "gives more)");
    }
  }

  void add_operators() {
    const PipelineFile& pipeline = *files_.pipeline;
    const int root = pipeline.root();
    places_.in_profile.assign(pipeline.operators.size(), -1);
    for (const int at : pipeline.in_data_flow(root)) {
      const PipelineOperator& op = pipeline.operators[static_cast<std::size_t>(at)];
      places_.in_profile[static_cast<std::size_t>(at)] = static_cast<int>(profile_.operators.size());
      OperatorProfile made;
      made.name = op.name();
      made.kind = kind_of_type(op.type, op.children.empty());
      made.workers = std::max(1, op.workers.value_or(1));
      made.items_per_batch = made.busy_s = made.demand_s = -1;
      made.fidelity = Fidelity::sampled;
      profile_.operators.push_back(std::move(made));
      places_.inlined.push_back(is_inlined(at, root));
    }
    const std::size_t apart = pipeline.operators.size() - profile_.operators.size();
    if (apart > 0)
      profile_.notes.push_back(std::to_string(apart) + " operators of another tree are left out");
  }

  bool is_inlined(int at, int root) const {
    const PipelineOperator& op = files_.pipeline->operators[static_cast<std::size_t>(at)];
    if (op.queue || op.children.empty()) return false;
    return is_inlined_type(op.type) || (at != root && !feeds_device(op.type));
  }

  /// Sink mode: a thread takes batches from the host queue and pushes them to the device.
  void add_feeder() {
    for (std::size_t i = 0; i < profile_.operators.size(); ++i) {
      if (profile_.operators[i].kind == profile::OperatorKind::transfer) places_.feeder = static_cast<int>(i);
    }
    if (!files_.device_queue) return;
    if (places_.feeder < 0) {
      places_.feeder = static_cast<int>(profile_.operators.size());
      OperatorProfile made;
      made.name = "DataQueueOp";
      made.kind = profile::OperatorKind::transfer;
      made.items_per_batch = 1;
      made.busy_s = made.demand_s = -1;
      profile_.operators.push_back(std::move(made));
      places_.inlined.push_back(false);
    }
    OperatorProfile& feeder = profile_.operators[static_cast<std::size_t>(places_.feeder)];
    feeder.fidelity = Fidelity::counter;
    feeder.items = files_.device_queue->batches.size();
    double pushed_ms = 0;
    std::size_t pushes = 0;
    for (std::size_t i = 1; i < files_.device_queue->batches.size(); ++i) {
      const std::optional<double>& push = files_.device_queue->batches[i].push_ms;
      if (!push) continue;
      pushed_ms += *push;
      ++pushes;
    }
    if (pushes == 0 || !device_waits()) return;
    feeder.busy_s = pushed_ms * kMillisecond;
    feeder.demand_s = feeder.busy_s / static_cast<double>(pushes);
    if (profile_.elapsed_s > 0) {
      feeder.states.busy = std::min(1.0, feeder.busy_s / profile_.elapsed_s);
      feeder.states.blocked_in = 1 - feeder.states.busy;
    }
  }

  /// A push lasts until the device's queue has room: it is work only where that queue is mostly empty.
  bool device_waits() const {
    constexpr double kMostly = 0.5;
    if (!files_.getnext) return false;
    const auto& calls = files_.getnext->calls;
    const auto empty =
        std::count_if(calls.begin(), calls.end(), [](const GetNext& call) { return call.level == 0; });
    return static_cast<double>(empty) >= kMostly * static_cast<double>(calls.size());
  }

  /// Place in the profile of the operator that takes what `at` makes; -1: the training loop.
  int consumer_of(int at) const {
    const PipelineFile& pipeline = *files_.pipeline;
    for (int above = pipeline.parent_of(at); above >= 0; above = pipeline.parent_of(above)) {
      const int place = places_.in_profile[static_cast<std::size_t>(above)];
      if (place < 0) return -1;
      if (!places_.inlined[static_cast<std::size_t>(place)]) return place;
    }
    return places_.feeder;
  }

  void add_queues() {
    const PipelineFile& pipeline = *files_.pipeline;
    for (std::size_t at = 0; at < pipeline.operators.size(); ++at) {
      const PipelineOperator& op = pipeline.operators[at];
      const int from = places_.in_profile[at];
      if (!op.queue || from < 0) continue;
      const int to = consumer_of(static_cast<int>(at));
      if (to == from) continue;
      QueueProfile queue;
      queue.capacity = op.queue->capacity;
      queue.unit = "rows";
      connect(queue, from, to, op.name() + " queue");
      // Levels of a run without steady samples are still levels.
      const bool steady = range_.size() > 0;
      fill_queue(op.queue->levels, steady ? range_.begin : 0, steady ? range_.end : op.queue->levels.size(),
                 queue);
      places_.source_of_queue.push_back(static_cast<int>(at));
      profile_.queues.push_back(std::move(queue));
    }
    // In the order of the data flow.
    std::vector<std::size_t> order(profile_.queues.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return profile_.queues[a].from_operators.front() < profile_.queues[b].from_operators.front();
    });
    std::vector<QueueProfile> queues;
    std::vector<int> sources;
    for (const std::size_t i : order) {
      queues.push_back(std::move(profile_.queues[i]));
      sources.push_back(places_.source_of_queue[i]);
    }
    profile_.queues = std::move(queues);
    places_.source_of_queue = std::move(sources);
  }

  void connect(QueueProfile& queue, int from, int to, std::string name) {
    if (from >= 0) {
      queue.from_operators = {from};
      queue.from = profile_.operators[static_cast<std::size_t>(from)].name;
    }
    if (to >= 0) {
      queue.to_operators = {to};
      queue.to = profile_.operators[static_cast<std::size_t>(to)].name;
    } else {
      queue.to = "sink";
      queue.to_sink = true;
    }
    const bool is_last = to < 0 || (places_.feeder >= 0 && to == places_.feeder);
    queue.name = is_last ? "host queue" : std::move(name);
    if (is_last) queue.unit = "batches";
    queue.fidelity = Fidelity::sampled;
  }

  /// The host queue as it was at each fetch, where the samples do not have it; the device's own queue.
  void add_queues_of_batches() {
    const bool has_host =
        std::any_of(profile_.queues.begin(), profile_.queues.end(), [](const QueueProfile& queue) {
          return queue.name == "host queue" && queue.samples.value_or(0) > 0;
        });
    const BatchRecords* batches = files_.batches();
    if (!has_host && batches != nullptr) add_host_queue(*batches);
    if (!files_.getnext) return;
    std::vector<std::int64_t> levels;
    for (const GetNext& call : files_.getnext->calls) levels.push_back(call.level);
    QueueProfile queue;
    queue.unit = "batches";
    connect(queue, places_.feeder, -1, "");
    queue.name = "data queue";
    fill_queue(levels, 0, levels.size(), queue);
    profile_.queues.push_back(std::move(queue));
    places_.source_of_queue.push_back(-1);
  }

  void add_host_queue(const BatchRecords& batches) {
    // Batch 1 was not measured: its level is a constant 0.
    std::vector<std::int64_t> levels;
    QueueProfile queue;
    for (std::size_t i = 1; i < batches.batches.size(); ++i) {
      const BatchRecord& each = batches.batches[i];
      if (each.level) levels.push_back(*each.level);
      if (each.capacity) queue.capacity = *each.capacity;
    }
    if (levels.size() < kFewestSamples) return;
    std::erase_if(profile_.queues, [](const QueueProfile& each) { return each.name == "host queue"; });
    places_.source_of_queue.resize(profile_.queues.size());
    int last = -1;
    for (std::size_t i = 0; i < profile_.operators.size(); ++i) {
      if (static_cast<int>(i) != places_.feeder && !places_.inlined[i]) last = static_cast<int>(i);
    }
    connect(queue, last, places_.feeder, "");
    fill_queue(levels, 0, levels.size(), queue);
    profile_.queues.push_back(std::move(queue));
    places_.source_of_queue.push_back(-1);
  }

  /// In the process's threads or in processes of its own, where its CPU time shows it; and which operators
  /// share a thread: inlined ones with the one that takes from them.
  void add_where_it_runs() {
    group_.assign(profile_.operators.size(), -1);
    double in_operators = 0;
    for (const OperatorProfile& op : profile_.operators) {
      if (op.cpu_s && profile_.elapsed_s > 0) in_operators += *op.cpu_s / profile_.elapsed_s;
    }
    const std::optional<double>& process = profile_.host.process_cpu_cores;
    for (std::size_t i = 0; i < profile_.operators.size(); ++i) {
      OperatorProfile& op = profile_.operators[i];
      group_[i] = static_cast<int>(i);
      const double cores = op.cpu_s && profile_.elapsed_s > 0 ? *op.cpu_s / profile_.elapsed_s : 0;
      if (!process || cores < kComputesCores) continue;
      if (in_operators <= kInProcess * *process) op.executor = profile::Executor::thread;
      if (cores > kInProcess * *process) op.executor = profile::Executor::process;
    }
    if (!files_.pipeline) return;
    for (std::size_t at = 0; at < places_.in_profile.size(); ++at) {
      const int place = places_.in_profile[at];
      if (place < 0 || !places_.inlined[static_cast<std::size_t>(place)]) continue;
      const int above = consumer_of(static_cast<int>(at));
      group_[static_cast<std::size_t>(place)] = above;
      if (above < 0) continue;
      profile_.operators[static_cast<std::size_t>(place)].segment = above;
      profile_.operators[static_cast<std::size_t>(above)].segment = above;
    }
  }

  const RankFiles& files_;
  const SampleRange range_;
  profile::Profile profile_;
  FilePlaces places_;
  std::vector<int> group_;  ///< of each operator of the profile: the one in whose threads it runs
};

}  // namespace

profile::Profile profile_of(const RankFiles& files) { return Builder(files).build(); }

}  // namespace headrace::loader_files
