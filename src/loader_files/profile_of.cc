#include "headrace/loader_files/profile_of.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "host_of.h"
#include "model_of.h"
#include "operator_kinds.h"
#include "queue_levels.h"
#include "sample_range.h"
#include "sink_of.h"
#include "step_profile.h"

namespace headrace::loader_files {
namespace {

using profile::Fidelity;
using profile::OperatorProfile;
using profile::QueueProfile;

/// Fewer samples say nothing about what an operator did.
constexpr std::size_t kFewestSamples = 8;
/// CPU time above which an operator is seen to compute: where it does, and in which process.
constexpr double kComputesCores = 0.2;
/// Operators beside the process's own time, where they would have to be inside it.
constexpr double kInProcess = 1.1;
/// Share of the samples at work below which the others may hide as much again.
constexpr double kMostlyAtWork = 0.5;

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
    if (files_.pipeline) add_states();
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

  bool judges_samples() const { return range_.size() >= kFewestSamples; }

  void add_operators() {
    const PipelineFile& pipeline = *files_.pipeline;
    const int root = pipeline.root();
    place_.assign(pipeline.operators.size(), -1);
    for (const int at : pipeline.in_data_flow(root)) {
      const PipelineOperator& op = pipeline.operators[static_cast<std::size_t>(at)];
      place_[static_cast<std::size_t>(at)] = static_cast<int>(profile_.operators.size());
      OperatorProfile made;
      made.name = op.name();
      made.kind = kind_of_type(op.type, op.children.empty());
      made.workers = std::max(1, op.workers.value_or(1));
      made.items_per_batch = made.busy_s = made.demand_s = -1;
      made.fidelity = Fidelity::sampled;
      profile_.operators.push_back(std::move(made));
      inlined_.push_back(is_inlined(at, root));
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
      if (profile_.operators[i].kind == profile::OperatorKind::transfer) feeder_ = static_cast<int>(i);
    }
    if (!files_.device_queue) return;
    if (feeder_ < 0) {
      feeder_ = static_cast<int>(profile_.operators.size());
      OperatorProfile made;
      made.name = "DataQueueOp";
      made.kind = profile::OperatorKind::transfer;
      made.items_per_batch = 1;
      made.busy_s = made.demand_s = -1;
      profile_.operators.push_back(std::move(made));
      inlined_.push_back(false);
    }
    OperatorProfile& feeder = profile_.operators[static_cast<std::size_t>(feeder_)];
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
    constexpr double kMillisecond = 1e-3;
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
      const int place = place_[static_cast<std::size_t>(above)];
      if (place < 0) return -1;
      if (!inlined_[static_cast<std::size_t>(place)]) return place;
    }
    return feeder_;
  }

  void add_queues() {
    const PipelineFile& pipeline = *files_.pipeline;
    for (std::size_t at = 0; at < pipeline.operators.size(); ++at) {
      const PipelineOperator& op = pipeline.operators[at];
      const int from = place_[at];
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
      source_of_queue_.push_back(static_cast<int>(at));
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
      sources.push_back(source_of_queue_[i]);
    }
    profile_.queues = std::move(queues);
    source_of_queue_ = std::move(sources);
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
    const bool is_last = to < 0 || (feeder_ >= 0 && to == feeder_);
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
    connect(queue, feeder_, -1, "");
    queue.name = "data queue";
    fill_queue(levels, 0, levels.size(), queue);
    profile_.queues.push_back(std::move(queue));
    source_of_queue_.push_back(-1);
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
    source_of_queue_.resize(profile_.queues.size());
    int last = -1;
    for (std::size_t i = 0; i < profile_.operators.size(); ++i) {
      if (static_cast<int>(i) != feeder_ && !inlined_[i]) last = static_cast<int>(i);
    }
    connect(queue, last, feeder_, "");
    fill_queue(levels, 0, levels.size(), queue);
    profile_.queues.push_back(std::move(queue));
    source_of_queue_.push_back(-1);
  }

  const std::vector<std::int32_t>* levels_of(std::size_t queue) const {
    const int at = source_of_queue_[queue];
    return at < 0 ? nullptr : &files_.pipeline->operators[static_cast<std::size_t>(at)].queue->levels;
  }

  /// What an operator did at each sample, from the queues around it.
  void add_states() {
    const PipelineFile& pipeline = *files_.pipeline;
    working_.assign(profile_.operators.size(), {});
    std::map<std::int64_t, const OperatorCpu*> cpu_of;
    if (files_.cpu) {
      for (const OperatorCpu& op : files_.cpu->operators) cpu_of.emplace(op.id, &op);
    }
    for (std::size_t at = 0; at < pipeline.operators.size(); ++at) {
      const int place = place_[at];
      if (place < 0) continue;
      OperatorProfile& op = profile_.operators[static_cast<std::size_t>(place)];
      const auto cpu = cpu_of.find(pipeline.operators[at].id);
      const std::optional<double> cores =
          cpu == cpu_of.end() ? std::nullopt : steady_cores(files_, cpu->second->percent);
      if (cores && profile_.elapsed_s > 0) op.cpu_s = *cores * profile_.elapsed_s;
      if (inlined_[static_cast<std::size_t>(place)] || place == feeder_) continue;
      if (judges_samples()) judge_samples(place, op);
      if (!cores || profile_.elapsed_s <= 0) continue;
      // Its workers were at work for at least the CPU time that they used; for longer if they use less than a
      // core each while they have input and room.
      const std::optional<double> at_work = cores_at_work(place, cpu->second->percent);
      const double full_load = at_work ? *at_work : static_cast<double>(op.workers);
      const double computed = std::min(1.0 - op.states.blocked_out, *cores / full_load);
      if (op.states.busy < computed) set_busy(op, computed);
    }
    // One without input may have been at its last row, one without room at the next: unless it was mostly seen at
    // work, nobody knows for how long it was.
    for (OperatorProfile& op : profile_.operators) {
      if (op.fidelity == Fidelity::sampled && op.states.busy < kMostlyAtWork) op.busy_s = op.demand_s = -1;
    }
  }

  /// Cores that it used at the samples at which it had input and room for output, so that none of its workers
  /// rested; empty where that was rare, or where the CPU time is too little to be measured.
  std::optional<double> cores_at_work(int place, const TimedSeries& percent) const {
    double sum = 0;
    std::size_t count = 0;
    for (const std::size_t i : working_[static_cast<std::size_t>(place)]) {
      if (i >= range_.stamps_ms.size()) break;
      const auto at = std::lower_bound(percent.end_ms.begin(), percent.end_ms.end(), range_.stamps_ms[i]);
      if (at == percent.end_ms.end() || *at != range_.stamps_ms[i]) continue;
      sum += percent.values[static_cast<std::size_t>(at - percent.end_ms.begin())] / kPercent;
      ++count;
    }
    if (count < kFewestSamples || sum < kComputesCores * static_cast<double>(count)) return std::nullopt;
    return sum / static_cast<double>(count);
  }

  void set_busy(OperatorProfile& op, double busy) {
    const double others = op.states.blocked_in + op.states.blocked_out;
    const double left = others > 0 ? (1 - busy) / others : 0;
    op.states.blocked_in *= left;
    op.states.blocked_out *= left;
    if (others <= 0) op.states.idle = 1 - busy;
    op.states.busy = busy;
    op.busy_s = busy * op.workers * profile_.elapsed_s;
    op.demand_s = busy * profile_.sink.step_s;
  }

  void judge_samples(int place, OperatorProfile& op) {
    std::vector<const std::vector<std::int32_t>*> inputs;
    const std::vector<std::int32_t>* output = nullptr;
    std::int64_t capacity = 0;
    bool is_fed = false;
    for (std::size_t q = 0; q < profile_.queues.size(); ++q) {
      const QueueProfile& queue = profile_.queues[q];
      const std::vector<std::int32_t>* levels = levels_of(q);
      const bool feeds =
          std::find(queue.to_operators.begin(), queue.to_operators.end(), place) != queue.to_operators.end();
      is_fed = is_fed || feeds;
      if (levels == nullptr) continue;
      if (feeds) inputs.push_back(levels);
      if (!queue.from_operators.empty() && queue.from_operators.front() == place) {
        output = levels;
        capacity = queue.capacity;
      }
    }
    // Without its output's levels nobody knows whether it was blocked; without those of an input, whether it
    // had anything to do.
    const bool has_input = !files_.pipeline->operators[file_place(place)].children.empty();
    if (output == nullptr || (has_input && inputs.empty()) || (is_fed && inputs.empty())) return;
    std::size_t samples = 0;
    double busy = 0;
    double starved = 0;
    double blocked = 0;
    std::vector<std::size_t>& working = working_[static_cast<std::size_t>(place)];
    for (std::size_t i = range_.begin; i < range_.end && i < output->size(); ++i) {
      ++samples;
      const bool full = capacity > 0 && (*output)[i] >= capacity;
      const bool fed = std::all_of(
          inputs.begin(), inputs.end(),
          [i](const std::vector<std::int32_t>* levels) { return i < levels->size() && (*levels)[i] > 0; });
      (full ? blocked : fed ? busy : starved) += 1;
      if (!full && fed) working.push_back(i);
    }
    if (samples < kFewestSamples) return;
    const auto count = static_cast<double>(samples);
    op.states = {busy / count, starved / count, blocked / count, 0};
    if (profile_.elapsed_s <= 0) return;
    op.busy_s = op.states.busy * op.workers * profile_.elapsed_s;
    op.demand_s = op.states.busy * profile_.sink.step_s;
  }

  std::size_t file_place(int place) const {
    const auto found = std::find(place_.begin(), place_.end(), place);
    return static_cast<std::size_t>(found - place_.begin());
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
    for (std::size_t at = 0; at < place_.size(); ++at) {
      const int place = place_[at];
      if (place < 0 || !inlined_[static_cast<std::size_t>(place)]) continue;
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
  std::vector<int> place_;            ///< in the profile, of each operator of the file; -1: not shown
  std::vector<bool> inlined_;         ///< of each operator of the profile
  std::vector<int> source_of_queue_;  ///< place in the file of the operator whose samples a queue has
  std::vector<std::vector<std::size_t>> working_;  ///< of each operator: samples at which it was at work
  std::vector<int> group_;  ///< of each operator of the profile: the one in whose threads it runs
  int feeder_ = -1;
};

}  // namespace

profile::Profile profile_of(const RankFiles& files) { return Builder(files).build(); }

}  // namespace headrace::loader_files
