#include "headrace/analysis/second_opinions/second_opinions.h"

#include <algorithm>
#include <cmath>

#include "headrace/analysis/second_opinions/autotune.h"
#include "headrace/analysis/second_opinions/bottleneck_analyzer.h"
#include "headrace/analysis/second_opinions/mindinsight.h"
#include "headrace/analysis/words.h"
#include "headrace/loader_files/steady_files.h"

namespace headrace::analysis {
namespace {

using Names = std::vector<std::string>;

/// Levels of queues that were read less often say nothing.
constexpr std::size_t kFewSamples = 8;

std::string listed(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Opinions {
 public:
  Opinions(const loader_files::RankFiles& files, const profile::Profile& profile, const Diagnosis& diagnosis)
      : files_(files), profile_(profile), diagnosis_(diagnosis), steady_(loader_files::only_steady(files)) {}

  std::vector<profile::SecondOpinion> all() {
    const bool sampled = files_.pipeline && files_.pipeline->samples() > 0;
    if (sampled) add_usage();
    if (files_.batches() != nullptr) add_queue_summary();
    add_machine();
    if (sampled) {
      add_analyzer();
      add_autotune();
    } else if (files_.summary) {
      add_written_summary();
    }
    return std::move(rows_);
  }

 private:
  void add(std::string tool, std::string rule, std::string says, const Names& named, std::string misled) {
    rows_.push_back({std::move(tool), std::move(rule), std::move(says), listed(named), std::move(misled)});
  }

  const profile::OperatorProfile* op(const std::string& name) const {
    const auto found = std::find_if(profile_.operators.begin(), profile_.operators.end(),
                                    [&](const profile::OperatorProfile& each) { return each.name == name; });
    return found == profile_.operators.end() ? nullptr : &*found;
  }

  /// Why an operator that is not the one that limits looks as if it were.
  std::string why_not(const std::string& name) const {
    const profile::OperatorProfile* named = op(name);
    const std::string limit = *diagnosis_.op;
    if (named == nullptr) return name + " is not what limits; " + limit + " is";
    constexpr double kMostly = 0.5;
    if (named->states.blocked_in > kMostly)
      return name + " waits for input " + percent(named->states.blocked_in) + " of the time, because " +
             limit + " does not keep up";
    if (named->states.blocked_out > kMostly)
      return name + " waits for room in its output queue " + percent(named->states.blocked_out) +
             " of the time, because " + limit + " does not keep up";
    return limit + " needs more of the step than " + name;
  }

  /// "" where what it names is what the diagnosis says. `steady`: what the rule would name without the samples
  /// of the start and of the end.
  std::string misled(const Names& named, const Names& steady) const {
    std::string why;
    if (diagnosis_.kind == VerdictKind::not_input_bound && !named.empty()) {
      why = "the training loop does not wait for its input (" + percent(profile_.sink.wait_share) +
            " of its time), so no operator limits it";
    } else if (is_bound(diagnosis_.kind) && diagnosis_.op) {
      if (named.empty()) {
        why = "the training loop waits for " + percent(profile_.sink.wait_share) + " of its time, for " +
              *diagnosis_.op;
      } else if (!has(named, *diagnosis_.op)) {
        why = why_not(named.front());
      } else if (named.size() > 1) {
        const auto other = std::find_if(named.begin(), named.end(),
                                        [&](const std::string& name) { return name != *diagnosis_.op; });
        if (other != named.end()) why = "it names " + *other + " as well: " + why_not(*other);
      }
    } else if (is_bound(diagnosis_.kind) && !named.empty() && steady_.pipeline->samples() < kFewSamples) {
      why = "the queues were read " + std::to_string(steady_.pipeline->samples()) +
            " times only; a shorter monitor sampling interval would tell";
    }
    if (diagnosis_.cause == Cause::gil_contention && diagnosis_.op && has(named, *diagnosis_.op)) {
      why += std::string(why.empty() ? "" : "; ") +
             "more workers would be threads that share one interpreter lock, where processes would help";
    }
    if (!why.empty() && steady != named) {
      why +=
          "; its averages contain the samples of the start and of the end, when the source had run dry: "
          "without them it names " +
          (steady.empty() ? "nothing" : listed(steady));
    }
    return why;
  }

  void add_usage() {
    const std::vector<UsageRow> table = usage_table(*files_.pipeline);
    if (table.empty()) return;
    const Names named = usage_bottlenecks(table);
    const std::string advice = usage_advice(table, named);
    std::string says = advice;
    if (says.empty())
      says = named.empty() ? "no operator is a bottleneck" : "only " + named.front() + ": no proposal";
    const bool first_only = !named.empty() && named.front() == table.front().name() && named.size() == 1;
    const Names steady = usage_bottlenecks(usage_table(*steady_.pipeline));
    // The first operator alone means that all queues are full.
    add("MindInsight", "operator queues", says, named, first_only ? misled({}, {}) : misled(named, steady));
    const QueueSummary queues = queue_summary(files_);
    if (files_.steps && files_.steps->average) {
      const bool shown = shows_operator_advice(files_, queues, !advice.empty());
      add("MindInsight", "proposals shown",
          shown ? "the operators' proposal is shown" : "the operators' proposal is hidden", {},
          !shown && is_bound(diagnosis_.kind) && !advice.empty()
              ? "it is shown only where the device's step interval is over 0.5 ms and the host queue is "
                "empty "
                "for more than 30 % of the batches"
              : "");
    }
  }

  void add_queue_summary() {
    const QueueSummary summary = queue_summary(files_);
    if (summary.warns_of == QueueStatus::unknown) return;
    std::string says = "host queue empty at " + std::to_string(summary.host_empty) + " of " +
                       std::to_string(summary.host_records) + " batches";
    if (summary.data_records > 0)
      says += ", data queue at " + std::to_string(summary.data_empty) + " of " +
              std::to_string(summary.data_records);
    std::string why;
    if (summary.warns_of == QueueStatus::data_process) {
      says += ": data processing can be optimized";
      if (diagnosis_.kind == VerdictKind::not_input_bound)
        why = "the training loop waits for " + percent(profile_.sink.wait_share) + " of its time only";
    } else if (summary.warns_of == QueueStatus::data_transmission) {
      says += ": data transmission can be optimized";
      if (diagnosis_.kind == VerdictKind::not_input_bound)
        why = "one empty queue is enough for it, and the training loop waits for " +
              percent(profile_.sink.wait_share) + " of its time only";
    } else {
      says += ": the training script can be optimized";
      if (is_bound(diagnosis_.kind))
        why = "the training loop waits for " + percent(profile_.sink.wait_share) + " of its time";
    }
    add("MindInsight", "queue summary", says, {}, why);
  }

  void add_machine() {
    constexpr int kBusy = 80;
    const std::optional<int> active = machine_active_percent(files_);
    if (!active || *active <= kBusy) return;
    std::string why;
    const std::vector<double>& idle = files_.cpu->raw_idle;
    const std::optional<double> truth = files_.cpu->idle_percent.mean();
    constexpr double kApart = 5;
    if (truth && idle.size() > files_.cpu->idle_percent.values.size() + 2 &&
        std::abs(100 - *truth - *active) > kApart) {
      why =
          "every second value of the file's idle times repeats as 0; without them the machine is active "
          "for " +
          percent(1 - *truth / 100);
    }
    add("MindInsight", "CPU usage",
        "The average CPU usage of the entire system is " + std::to_string(*active) +
            ", which may affect the data processing performance.",
        {}, why);
  }

  /// "Batch(id=0)" as the operator of that number.
  Names operator_of(const PipelineSummary& summary) const {
    const auto found =
        std::find(summary.pipeline_ops.begin(), summary.pipeline_ops.end(), summary.bottleneck_warning);
    if (summary.bottleneck_warning.empty() || found == summary.pipeline_ops.end()) return {};
    const int place = files_.pipeline->place(
        summary.op_ids[static_cast<std::size_t>(found - summary.pipeline_ops.begin())]);
    return {files_.pipeline->operators[static_cast<std::size_t>(place)].name()};
  }

  void add_analyzer() {
    const PipelineSummary summary = pipeline_summary(files_);
    const Names named = operator_of(summary);
    std::string why = misled(named, operator_of(pipeline_summary(steady_)));
    if (!why.empty() && !named.empty() && is_bound(diagnosis_.kind))
      why += "; of all operators that match its rule it keeps the one nearest to the training loop";
    add("MindSpore", "BottleneckAnalyzer",
        summary.bottleneck_suggestion.empty() ? "no bottleneck" : summary.bottleneck_suggestion, named, why);
    for (const std::string& detail : summary.cpu_analysis_details)
      add("MindSpore", "BottleneckAnalyzer, CPU", detail, {}, "");
    for (const std::string& detail : summary.queue_analysis_details)
      add("MindSpore", "BottleneckAnalyzer, queues", detail, {}, "");
  }

  /// Without the samples: what it wrote itself.
  void add_written_summary() {
    const loader_files::PipelineSummaryFile& summary = *files_.summary;
    add("MindSpore", "BottleneckAnalyzer",
        summary.suggestion.empty() ? (summary.bottleneck.empty() ? "no bottleneck" : summary.bottleneck)
                                   : summary.suggestion,
        {}, "");
  }

  static Names workers_changed(const AutoTuneRound& round) {
    Names named;
    for (const AutoTuneRequest& each : round.requests) {
      if (each.workers) named.push_back(each.type + "_" + std::to_string(each.id));
    }
    return named;
  }

  void add_autotune() {
    const AutoTuneRound round = autotune_round(files_);
    if (!round.connector_utilisation) return;
    std::string says;
    for (const AutoTuneRequest& each : round.requests) says += (says.empty() ? "" : "; ") + each.text();
    const std::string use = "host queue used " + percent(*round.connector_utilisation);
    if (!round.is_bottleneck) {
      says = use + ": the dataset is no bottleneck";
    } else if (says.empty()) {
      says = use + ": the dataset is the bottleneck, and nothing is changed";
    }
    const Names named = workers_changed(round);
    std::string why = misled(named, workers_changed(autotune_round(steady_)));
    if (!why.empty() && is_bound(diagnosis_.kind) && takes_wrong_input())
      why +=
          "; it takes the operator of the next number for the input, which is wrong where two inputs are "
          "joined";
    add("MindSpore", "AutoTune, one round", says, named, why);
  }

  bool takes_wrong_input() const {
    return std::any_of(files_.pipeline->operators.begin(), files_.pipeline->operators.end(),
                       [](const loader_files::PipelineOperator& each) { return each.children.size() > 1; });
  }

  const loader_files::RankFiles& files_;
  const profile::Profile& profile_;
  const Diagnosis& diagnosis_;
  const loader_files::RankFiles steady_;
  std::vector<profile::SecondOpinion> rows_;
};

}  // namespace

std::vector<profile::SecondOpinion> second_opinions(const loader_files::RankFiles& files,
                                                    const profile::Profile& profile,
                                                    const Diagnosis& diagnosis) {
  return Opinions(files, profile, diagnosis).all();
}

}  // namespace headrace::analysis
