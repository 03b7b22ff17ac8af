#include "headrace/analysis/traced_input.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/device/callers.h"
#include "analysis/traced_input/iterators.h"
#include "analysis/traced_input/loop_calls.h"
#include "headrace/analysis/device/device_idle.h"

namespace headrace::analysis {
namespace {

using profile::OperatorProfile;
using trace::Row;

constexpr double kSecond = 1e-9;
constexpr std::string_view kWaitForDataset = "IteratorGetNext";  // ...Op::DoCompute

double in_seconds(std::int64_t ns) { return static_cast<double>(ns) * kSecond; }

/// "RangeDataset:0" -> "range"; what a user called it stays.
std::string shown_name(std::string_view dataset, std::string_view family) {
  constexpr std::string_view kFused = "fused(";
  if (dataset.starts_with(kFused) && dataset.ends_with(')')) {
    dataset = dataset.substr(kFused.size(), dataset.size() - kFused.size() - 1);
    std::string joined;
    while (!dataset.empty()) {
      const std::size_t comma = dataset.find(',');
      joined += (joined.empty() ? "" : " + ") + shown_name(dataset.substr(0, comma), "");
      dataset = comma == std::string_view::npos ? std::string_view() : dataset.substr(comma + 1);
    }
    return joined;
  }
  const std::size_t end = dataset.find("Dataset");
  const bool is_tensorflows =
      dataset.empty() || (end != std::string_view::npos && dataset.find(':', end) != std::string_view::npos);
  if (!is_tensorflows) return std::string(dataset);
  std::string_view plain = dataset.empty() ? family : dataset.substr(0, end);
  constexpr std::string_view kParallel = "Parallel";
  if (plain.starts_with(kParallel) && plain.size() > kParallel.size()) plain.remove_prefix(kParallel.size());
  std::string name(plain);
  if (!name.empty()) name[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));
  return name;
}

profile::Word<profile::OperatorKind> kind_of(std::string_view family, bool is_leaf) {
  using enum profile::OperatorKind;
  if (is_leaf) return source;
  if (family.find("Batch") != std::string_view::npos) return batch;
  if (family.find("Shuffle") != std::string_view::npos) return shuffle;
  return family == "Filter" ? filter : map;
}

/// The waits themselves, by time; where one lies within another the outer one counts.
std::vector<Row> waits_of(const trace::Trace& trace, const std::vector<bool>& names) {
  const trace::Columns& columns = trace.columns();
  const auto is_wait = [&](Row row) { return names[columns.name[row]]; };
  device::Callers callers(trace, is_wait);
  std::vector<Row> found;
  for (Row row = 0; row < columns.size(); ++row) {
    if (!is_wait(row) || columns.phase[row] != 'X' || trace::is_on_device(trace.kinds[row])) continue;
    const Row above = trace.calls.parent_of(row);
    if (above == trace::kNoRow || callers.innermost(above) == trace::kNoRow) found.push_back(row);
  }
  std::stable_sort(found.begin(), found.end(),
                   [&](Row a, Row b) { return columns.start_ns[a] < columns.start_ns[b]; });
  return found;
}

/// The waits of one loop: of the dataset, or of the range by its name, that takes most of the time. `others`:
/// how many more there are.
struct LoopWaits {
  std::vector<Row> rows;
  int dataset = -1;
  std::size_t others = 0;
};

LoopWaits longest_loop(const trace::Columns& columns, const std::vector<Row>& waits,
                       const TracedDatasets& datasets) {
  struct Loop {
    std::vector<Row> rows;
    std::int64_t ns = 0;
  };
  std::map<std::pair<int, trace::Names::Id>, Loop> loops;
  for (const Row row : waits) {
    const int dataset = datasets.of_wait(row);
    Loop& loop = loops[{dataset, dataset < 0 ? columns.name[row] : trace::Names::Id{0}}];
    loop.rows.push_back(row);
    loop.ns += columns.duration_ns[row];
  }
  LoopWaits longest;
  const auto most = std::max_element(loops.begin(), loops.end(),
                                     [](const auto& a, const auto& b) { return a.second.ns < b.second.ns; });
  if (most == loops.end()) return longest;
  longest.rows = std::move(most->second.rows);
  longest.dataset = most->first.first;
  longest.others = loops.size() - 1;
  return longest;
}

/// A function of Python's that waits for what another thread makes.
bool waits_for_a_thread(std::string_view range) {
  constexpr std::array<std::string_view, 5> kFiles = {"queue.py", "threading.py", "_base.py", "connection.py",
                                                      "queues.py"};
  constexpr std::array<std::string_view, 6> kCalls = {"get", "acquire", "wait", "join", "result", "recv"};
  const std::size_t space = range.find(' ');
  if (!range.starts_with('$') || space == std::string_view::npos) return false;
  const std::string_view file = range.substr(1, range.find(':') - 1);
  const auto is = [](std::string_view wanted) {
    return [wanted](std::string_view each) { return each == wanted; };
  };
  return std::any_of(kFiles.begin(), kFiles.end(), is(file)) &&
         std::any_of(kCalls.begin(), kCalls.end(), is(range.substr(space + 1)));
}

class InputBuilder {
 public:
  InputBuilder(const trace::Trace& trace, LoopWaits loop, const TracedDatasets& datasets)
      : trace_(trace),
        columns_(trace.columns()),
        waits_(std::move(loop.rows)),
        dataset_(loop.dataset),
        others_(loop.others),
        datasets_(datasets) {
    time_ = {columns_.end_ns(waits_.front()), columns_.end_ns(waits_.back())};
  }

  std::optional<profile::Profile> build() {
    profile_.rank = static_cast<int>(trace_.rank);
    profile_.finished = true;
    model_.framework = "";
    const bool of_tensorflow = columns_.name_of(waits_.front()).starts_with(kWaitForDataset);
    add_sink(of_tensorflow);
    if (profile_.elapsed_s <= 0) return std::nullopt;
    if (of_tensorflow) {
      profile_.loader = "dataset";
      model_.framework = "tf.data";
      iterators_ = datasets_.iterators(dataset_, time_);
      const auto root =
          std::find_if(iterators_.begin(), iterators_.end(), [](const auto& it) { return it.parent < 0; });
      if (root == iterators_.end()) return std::nullopt;
      profile_.host.cores = static_cast<int>(root->cores);
      visit(static_cast<int>(root - iterators_.begin()), add_stage(0), 0);
    } else {
      profile_.loader = device::shown_range(columns_.name_of(waits_.front()));
      if (!add_ranges()) return std::nullopt;
    }
    if (others_ > 0)
      profile_.notes.push_back(std::to_string(others_) +
                               " other loops (validation, for one) waited less and are not in this report");
    finish_stages();
    profile_.notes.emplace_back(
        "from a device's trace: what computes and what waits inside an operator is not known");
    profile_.model = std::move(model_);
    return std::move(profile_);
  }

 private:
  /// Operators that one thread, or several alike, run.
  struct Stage {
    int workers = 1;  ///< 0: the loop
    std::vector<int> operators;
    std::vector<int> asks;  ///< iterators with threads of their own that it waits for
    std::string widened_by;
  };

  void add_sink(bool of_tensorflow) {
    std::vector<LoopCall> calls;
    for (const Row row : waits_) {
      LoopCall call;
      call.start_s = in_seconds(columns_.start_ns[row]);
      call.wait_s = in_seconds(columns_.duration_ns[row]);
      calls.push_back(call);
    }
    double mean = 0;
    for (const auto& call : calls) mean += call.wait_s / static_cast<double>(calls.size());
    // A batch that is there is handed over at once.
    constexpr double kAtOnce = 0.1;
    constexpr double kHandOver = 1e-3;
    for (auto& call : calls) call.ready = of_tensorflow && call.wait_s < std::max(kAtOnce * mean, kHandOver);
    add_calls(calls, profile_);
    batches_ = static_cast<double>(calls.size()) - 1;
  }

  int add_stage(int workers) {
    stages_.push_back({workers, {}, {}, ""});
    return static_cast<int>(stages_.size()) - 1;
  }

  int add_operator(int stage, std::string name, profile::Word<profile::OperatorKind> kind, int workers) {
    OperatorProfile made;
    made.name = std::move(name);
    made.kind = std::move(kind);
    made.workers = std::max(1, workers);
    made.fidelity = profile::Fidelity::sampled;
    made.executor = profile::Executor::thread;
    made.in_sink = stages_[static_cast<std::size_t>(stage)].workers == 0;
    const int used = ++names_[made.name];
    if (used > 1) made.name += "#" + std::to_string(used);
    profile_.operators.push_back(std::move(made));
    const int index = static_cast<int>(profile_.operators.size()) - 1;
    stages_[static_cast<std::size_t>(stage)].operators.push_back(index);
    return index;
  }

  void set_busy(OperatorProfile& op, double busy_s, std::uint64_t items) const {
    op.busy_s = busy_s;
    op.demand_s = busy_s / op.workers / batches_;
    op.items = items;
    op.items_per_batch = static_cast<double>(items) / batches_;
    op.states.busy = std::min(1.0, busy_s / op.workers / profile_.elapsed_s);
  }

  static profile::Latency latency_of(std::vector<std::int64_t> times) {
    profile::Latency latency;
    if (times.empty()) return latency;
    std::sort(times.begin(), times.end());
    double sum = 0;
    for (const std::int64_t ns : times) sum += in_seconds(ns);
    const auto at = [&](double share) {
      return in_seconds(times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))]);
    };
    latency.count = times.size();
    latency.mean_s = sum / static_cast<double>(times.size());
    latency.p50_s = at(0.5);
    latency.p90_s = at(0.9);
    latency.p99_s = at(0.99);
    latency.max_s = in_seconds(times.back());
    return latency;
  }

  /// Time for which the threads of `stage` wait for iterators with threads of their own, as a share.
  double waits_below(int stage) const {
    double waited = 0;
    for (const int at : stages_[static_cast<std::size_t>(stage)].asks)
      waited += in_seconds(iterators_[static_cast<std::size_t>(at)].self_ns);
    const int workers = std::max(1, stages_[static_cast<std::size_t>(stage)].workers);
    return std::min(1.0, waited / workers / profile_.elapsed_s);
  }

  /// Its time within the calls that it gets from below, waiting or not.
  double time_below(const TracedIterator& it) const {
    double spent = 0;
    for (const int child : it.children)
      spent += in_seconds(iterators_[static_cast<std::size_t>(child)].total_ns);
    return std::min(1.0, spent / profile_.elapsed_s);
  }

  /// Sources first: what is below an iterator before itself.
  void visit(int index, int stage, int depth) {
    constexpr int kDeepest = 200;
    const TracedIterator& it = iterators_[static_cast<std::size_t>(index)];
    if (depth > kDeepest) return;
    if (it.calls ==
        0) {  // what it does is not recorded: what is below it runs in the same thread, as far as is known
      for (const int child : it.children) visit(child, stage, depth + 1);
      return;
    }
    const bool is_root = it.parent < 0;
    if (!it.has_threads) {
      for (const int child : it.children) visit(child, stage, depth + 1);
      if (!is_root && it.family != "Prefetch" && it.family != "Model" && it.family != "Options")
        add_asked(it, stage);
      return;
    }
    stages_[static_cast<std::size_t>(stage)].asks.push_back(index);
    const int runner = add_stage(threads_below(it));
    for (const int child : it.children) visit(child, runner, depth + 1);
    int fills = runner;
    if (it.family.find("Interleave") != std::string::npos) {
      // Its calls run what is below it.
      const int now = static_cast<int>(std::max<std::int64_t>(1, it.parallelism));
      add_calls_parameter(it, shown_name(it.dataset, it.family), nullptr, runner, now);
    } else if (it.family != "Prefetch") {
      fills = add_parallel(it);
    }
    add_queue(it, fills, stage);
  }

  int threads_below(const TracedIterator& it) const {
    int threads = 1;
    for (const int child : it.children)
      threads = std::max(threads, iterators_[static_cast<std::size_t>(child)].at_once);
    return threads;
  }

  void add_asked(const TracedIterator& it, int stage) {
    const int workers = stages_[static_cast<std::size_t>(stage)].workers;
    const int at = add_operator(stage, shown_name(it.dataset, it.family),
                                kind_of(it.family, it.children.empty()), workers);
    OperatorProfile& op = profile_.operators[static_cast<std::size_t>(at)];
    set_busy(op, in_seconds(it.self_ns), it.calls);
    op.service = latency_of(it.self_times_ns);
    add_calls_parameter(it, op.name, &op, stage, 1);
  }

  /// A function that runs so many times at once, in threads of a pool.
  int add_parallel(const TracedIterator& it) {
    const int workers = static_cast<int>(std::clamp<std::int64_t>(it.parallelism, 1, 1024));
    const int stage = add_stage(workers);
    const int at = add_operator(stage, shown_name(it.dataset, it.family), kind_of(it.family, false), workers);
    OperatorProfile& op = profile_.operators[static_cast<std::size_t>(at)];
    // A call that waits finds it at work since the call before.
    const double waited = static_cast<double>(it.waited_calls) / static_cast<double>(it.calls);
    const double share = waited * (1 - time_below(it));
    set_busy(op, share * workers * profile_.elapsed_s, it.calls);
    add_calls_parameter(it, op.name, &op, stage, workers);
    return stage;
  }

  void add_calls_parameter(const TracedIterator& it, const std::string& name, OperatorProfile* op, int stage,
                           int now) {
    constexpr std::array<std::string_view, 4> kTakesCalls = {"Map", "Batch", "Interleave", "MapAndBatch"};
    std::string_view family = it.family;
    if (family.starts_with("Parallel")) family.remove_prefix(std::string_view("Parallel").size());
    if (std::find(kTakesCalls.begin(), kTakesCalls.end(), family) == kTakesCalls.end()) return;
    profile::LoaderParameter calls;
    calls.name = name.substr(0, name.find(" + ")) +
                 ".num_parallel_calls";  // of the map, where a batch is merged with it
    calls.value = std::int64_t{now};
    calls.usual = std::int64_t{1};
    calls.min = 1;
    // tf.data's pool has so many threads.
    if (profile_.host.cores > 0) calls.max = std::max(now, profile_.host.cores);
    calls.sets = profile::Quantity::workers;
    calls.stage = stage;
    if (it.runs_python)
      calls.set_in =
          "functions in Python (py_function, from_generator) take turns unless they release the "
          "interpreter's lock";
    if (op != nullptr)
      op->parameters.push_back(
          {calls.name, static_cast<double>(now), calls.min, calls.max, false, profile::Quantity::workers});
    stages_[static_cast<std::size_t>(stage)].widened_by = calls.name;
    model_.parameters.push_back(std::move(calls));
  }

  void add_queue(const TracedIterator& it, int fills, int takes) {
    profile::QueueProfile queue;
    queue.name = shown_name(it.dataset, it.family) + " queue";
    queue.capacity = it.capacity > 0 ? it.capacity : it.parallelism;
    queue.fidelity = profile::Fidelity::sampled;
    add_levels(it.levels, queue);
    queues_.push_back({std::move(queue), fills, takes});
  }

  /// The range around the wait and what lies directly in it, in the loop's thread. False if it mostly waits
  /// for another thread, because nothing tells which.
  bool add_ranges() {
    std::map<std::string, std::vector<std::int64_t>> inner;
    std::vector<std::int64_t> own;
    std::map<Row, std::int64_t> within;
    const std::set<Row> outer(waits_.begin(), waits_.end());
    std::int64_t for_threads_ns = 0;
    for (Row row = 0; row < columns_.size(); ++row) {
      if (columns_.phase[row] != 'X' || trace::is_on_device(trace_.kinds[row])) continue;
      const Row above = trace_.calls.parent_of(row);
      if (above == trace::kNoRow || !outer.contains(above) || columns_.start_ns[row] < time_.begin_ns)
        continue;
      const std::string_view name = columns_.name_of(row);
      if (waits_for_a_thread(name)) for_threads_ns += columns_.duration_ns[row];
      // A function of a library, which nobody can change.
      if (name.starts_with('$') && name.find(".py:") == std::string_view::npos) continue;
      inner[device::shown_range(name)].push_back(columns_.duration_ns[row]);
      within[above] += columns_.duration_ns[row];
    }
    for (std::size_t i = 1; i < waits_.size(); ++i)
      own.push_back(columns_.duration_ns[waits_[i]] - within[waits_[i]]);
    std::int64_t waited_ns = 0;
    for (const Row row : waits_) waited_ns += columns_.duration_ns[row];
    if (2 * for_threads_ns > waited_ns || waits_for_a_thread(columns_.name_of(waits_.front()))) return false;
    const int stage = add_stage(0);
    constexpr double kWorthNaming = 0.05;
    const auto add = [&](const std::string& name, const std::vector<std::int64_t>& times) {
      const profile::Latency latency = latency_of(times);
      const double busy_s = latency.mean_s * static_cast<double>(times.size());
      if (busy_s < kWorthNaming * profile_.elapsed_s) return;
      const int at = add_operator(stage, name, profile::OperatorKind::source, 1);
      OperatorProfile& op = profile_.operators[static_cast<std::size_t>(at)];
      set_busy(op, busy_s, times.size());
      op.service = latency;
    };
    for (const auto& [name, times] : inner) add(name, times);
    add(profile_.loader, own);
    return true;
  }

  void finish_stages() {
    std::vector<int> place(stages_.size(), -1);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const Stage& stage = stages_[s];
      if (stage.operators.empty()) continue;
      double busy = 0;
      for (const int at : stage.operators)
        busy += profile_.operators[static_cast<std::size_t>(at)].states.busy;
      const double waits = std::min(waits_below(static_cast<int>(s)), std::max(0.0, 1 - busy));
      for (const int at : stage.operators) {
        OperatorProfile& op = profile_.operators[static_cast<std::size_t>(at)];
        op.segment = stage.operators.front();
        // While others of its thread run, it waits for what they make.
        op.states.blocked_out = std::max(0.0, 1 - std::min(1.0, busy) - waits);
        op.states.blocked_in = std::max(0.0, 1 - op.states.busy - op.states.blocked_out);
      }
      place[s] = static_cast<int>(model_.stages.size());
      profile::LoaderStage made;
      made.name = profile_.operators[static_cast<std::size_t>(stage.operators.back())].name;
      made.operators = stage.operators;
      made.workers = stage.workers;
      made.runs_in = stage.workers == 0 ? profile::RunsIn::loop : profile::RunsIn::thread;
      made.widened_by = stage.widened_by;
      model_.stages.push_back(std::move(made));
    }
    for (profile::LoaderParameter& parameter : model_.parameters)
      parameter.stage = parameter.stage < 0 ? -1 : place[static_cast<std::size_t>(parameter.stage)];
    for (auto& [queue, fills, takes] : queues_) {
      connect(queue, stages_[static_cast<std::size_t>(fills)], stages_[static_cast<std::size_t>(takes)]);
      profile::LoaderBuffer buffer;
      buffer.from = place[static_cast<std::size_t>(fills)];
      buffer.to = stages_[static_cast<std::size_t>(takes)].operators.empty()
                      ? -1
                      : place[static_cast<std::size_t>(takes)];
      buffer.capacity = queue.capacity;
      model_.buffers.push_back(buffer);
      profile_.queues.push_back(std::move(queue));
    }
  }

  void connect(profile::QueueProfile& queue, const Stage& fills, const Stage& takes) {
    if (!fills.operators.empty()) {
      queue.from_operators = {fills.operators.back()};
      queue.from = profile_.operators[static_cast<std::size_t>(fills.operators.back())].name;
    }
    queue.to_sink = takes.operators.empty() && takes.workers == 0;
    queue.to = "sink";
    if (takes.operators.empty()) return;
    queue.to_operators = {takes.operators.front()};
    queue.to = profile_.operators[static_cast<std::size_t>(takes.operators.front())].name;
  }

  struct QueueBetween {
    profile::QueueProfile queue;
    int fills = 0;
    int takes = 0;
  };

  const trace::Trace& trace_;
  const trace::Columns& columns_;
  std::vector<Row> waits_;
  int dataset_ = -1;
  std::size_t others_ = 0;
  const TracedDatasets& datasets_;
  device::Interval time_;
  double batches_ = 0;
  profile::Profile profile_;
  profile::LoaderModel model_;
  std::vector<TracedIterator> iterators_;
  std::vector<Stage> stages_;
  std::vector<QueueBetween> queues_;
  std::map<std::string, int> names_;
};

}  // namespace

std::optional<profile::Profile> traced_input(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  const std::vector<bool> names = device::loader_wait_names(trace);
  const std::vector<Row> waits = waits_of(trace, names);
  if (waits.empty() || columns.name_of(waits.front()).starts_with("enumerate(")) return std::nullopt;
  const TracedDatasets datasets(trace);
  LoopWaits loop = longest_loop(columns, waits, datasets);
  constexpr std::size_t kFewest = 2;
  if (loop.rows.size() < kFewest) return std::nullopt;
  return InputBuilder(trace, std::move(loop), datasets).build();
}

}  // namespace headrace::analysis
