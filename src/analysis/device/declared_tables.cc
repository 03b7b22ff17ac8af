#include "headrace/analysis/device/declared_tables.h"

#include "analysis/device/profiler_tables.h"
#include "headrace/analysis/device/advice.h"
#include "headrace/analysis/device/annotations.h"
#include "headrace/analysis/device/cluster.h"
#include "headrace/analysis/device/collectives.h"
#include "headrace/analysis/device/critical_path.h"
#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/device/launches.h"
#include "headrace/analysis/device/memory.h"
#include "headrace/analysis/device/operators.h"
#include "headrace/analysis/device/step_points.h"
#include "headrace/analysis/device/steps.h"
#include "headrace/analysis/device/time_breakdown.h"
#include "headrace/analysis/device_memory/actions.h"
#include "headrace/analysis/device_memory/fragmentation.h"
#include "headrace/analysis/device_memory/growth.h"
#include "headrace/analysis/device_memory/holders.h"
#include "headrace/analysis/device_memory/out_of_memory.h"
#include "headrace/analysis/device_memory/over_time.h"
#include "headrace/analysis/device_memory/peak.h"
#include "headrace/memory/snapshot.h"
#include "headrace/profile/errors.h"

namespace headrace::analysis::device {
namespace {

// The options of an analysis as its users give them, where they differ from those of its C++ function.
struct Everything {};
struct Scoped {
  Scope scope;
};
struct GroupedOperators {
  Scope scope;
  std::vector<std::string> group_by = {"name"};
  std::size_t stack_frames = 5;
};
struct SecondsOfIdle {
  Scope scope;
  double consecutive_kernel_delay_s = 30e-6;
};
struct NamedSequences {
  Scope scope;
  std::optional<std::string> operator_name;
  std::size_t shortest = 3;
  std::size_t most = 5;
};

Table grouped_operators(Traces traces, const GroupedOperators& asked) {
  OperatorsOptions options{asked.scope};
  for (const std::string& key : asked.group_by) {
    if (key == "input_shapes") {
      options.by_input_shapes = true;
    } else if (key == "stack") {
      options.stack_frames = asked.stack_frames;
    } else if (key != "name") {
      throw UsageError("operators can be grouped by name, input_shapes and stack, not by " + key);
    }
  }
  return operators(traces, options);
}

IdleBreakdown idle_of_streams(Traces traces, const SecondsOfIdle& asked) {
  constexpr double kNsPerSecond = 1e9;
  const auto delay_ns = static_cast<std::int64_t>(asked.consecutive_kernel_delay_s * kNsPerSecond);
  return idle_breakdown(traces, {asked.scope, delay_ns, true});
}

Table named_sequences(Traces traces, const NamedSequences& asked) {
  if (!asked.operator_name) return operator_sequences(traces, {asked.scope});
  return sequences(traces, {asked.scope, *asked.operator_name, asked.shortest, asked.most});
}

Table requests_that_failed(Snapshot snapshot, const device_memory::OutOfMemoryOptions& options) {
  if (options.device_bytes < 0)
    throw UsageError("device_bytes is the size of the device's memory, not " +
                     std::to_string(options.device_bytes));
  return device_memory::out_of_memory(snapshot, options);
}

template <Table (*kMake)(Traces)>
Table of_all(Traces traces, const Everything&) {
  return kMake(traces);
}
template <Table (*kMake)(Traces, const Scope&)>
Table of_scope(Traces traces, const Scoped& asked) {
  return kMake(traces, asked.scope);
}
template <Table (*kMake)(Snapshot)>
Table of_snapshot(Snapshot snapshot, const Everything&) {
  return kMake(snapshot);
}

/// An analysis that has a method of its own in Python: its tables alone.
DeclaredAnalysis<Traces> made_elsewhere(std::string_view name, std::vector<DeclaredTable> tables) {
  return {name, "", {}, std::move(tables), {}};
}
/// A table that cannot be had by its name alone: one of two forms of an analysis, or of a profiler's file.
template <class Columns>
DeclaredAnalysis<Traces> shown_only(std::string_view name) {
  return made_elsewhere(name, {{"", shape_of<Columns>(), ""}});
}

}  // namespace

std::vector<DeclaredAnalysis<Traces>> declared_analyses() {
  const Option per_device{"per_device", &DeviceOptions::per_device};
  return {
      declared(
          "time_breakdown",
          "Idle, computing, and busy with other things only: seconds, and percent of the span of the work.",
          &time_breakdown, {sole<TimeBreakdownColumns>()}, per_device),
      declared("overlap", "How much of the communication ran under computation.", &overlap,
               {sole<OverlapColumns>()}, per_device),
      declared("kernel_breakdown", "Busy time by the kinds of work that ran at the same time.",
               &kernel_breakdown, {sole<KernelBreakdownColumns>()}, per_device),
      declared(
          "kernels",
          "Calls and times by kernel name, the longest first; each kind's tail as \"others\" on request.",
          &kernels, {sole<KernelsColumns>()}, Option{"memory", &KernelsOptions::memory},
          Option{"most_names", &KernelsOptions::most_names},
          Option{"time_share", &KernelsOptions::time_share}),
      declared("steps",
               "Every ``ProfilerStep``: its time on the host, and the device work that was launched in it.",
               &of_all<&steps>, {sole<StepsColumns>()}),
      declared("step_time",
               "The time of each step: computing, exposed and hidden communication, free, preparing.\n\n"
               "The columns of the Ascend profiler's ``step_trace_time.csv``, for any device.",
               &of_all<&step_time>, {sole<StepTimeTableColumns>()}),
      made_elsewhere("advice", {{"", shape_of<AdviceColumns>(), "advice"}}),
      declared("idle_breakdown",
               "Why each stream was idle (``host_wait``, ``kernel_wait`` or ``other``), and how long its "
               "gaps were.",
               &idle_of_streams,
               {part<IdleBreakdownColumns>("idle", &IdleBreakdown::idle, "idle_breakdown"),
                part<IdleIntervalsColumns>("intervals", &IdleBreakdown::intervals, "idle_intervals")},
               Option{"consecutive_kernel_delay_s", &SecondsOfIdle::consecutive_kernel_delay_s}),
      declared("queue_length", "Work launched but not yet started, by stream: time-weighted, and over time.",
               &queue_length,
               {part<QueueLengthColumns>("summary", &QueueLength::summary, "queue_length"),
                part<QueueLengthSeriesColumns>("series", &QueueLength::series)},
               Option{"capacity", &QueueLengthOptions::capacity}),
      declared("launches",
               "Every call that launched work: its duration, that of the work, and the delay between them.",
               &launches, {sole<LaunchesColumns>()}, Option{"memory", &LaunchesOptions::memory}),
      declared("memory_bandwidth",
               "Bandwidth of copies and fills, by direction: time-weighted, and over time.",
               +[](Traces traces, const Scoped& asked) { return memory_bandwidth(traces, asked.scope); },
               {part<MemoryBandwidthColumns>("summary", &MemoryBandwidth::summary, "memory_bandwidth"),
                part<MemoryBandwidthSeriesColumns>("series", &MemoryBandwidth::series)}),
      declared("annotations",
               "Named ranges, as recorded on the device or on the host, and the device work inside each.",
               &annotations,
               {part<AnnotationsColumns>("ranges", &Annotations::ranges, "annotations"),
                part<AnnotationKernelsColumns>("kernels", &Annotations::kernels)},
               Option{"on_device", &AnnotationsOptions::on_device},
               Option{"most_names", &AnnotationsOptions::most_names},
               Option{"time_share", &AnnotationsOptions::time_share},
               Option{"always_shown", &AnnotationsOptions::always_shown}),
      shown_only<SequencesColumns>("sequences(name)"),
      declared("sequences",
               "Recurring sequences of device work.\n\n"
               "With a name: the work of the outermost operators whose name contains it. Without: for every "
               "``aten::`` operator, with the delays of its launches.",
               &named_sequences, {sole<OperatorSequencesColumns>()},
               Option{"operator_name", &NamedSequences::operator_name, true},
               Option{"shortest", &NamedSequences::shortest}, Option{"most", &NamedSequences::most}),
      declared(
          "collectives",
          "Collectives by rank, group and size: calls, time, and the bandwidth of their shortest calls.\n\n"
          "``ranks``: of the group, as the trace's process groups say. ``bandwidth_gbps``: over the busiest "
          "link.",
          &of_scope<&collectives>, {sole<CollectivesColumns>()}),
      declared("stragglers",
               "Ranks by how often they were the last to reach the collective with the longest waits.\n\n"
               "``candidate`` is 1 for stragglers, at most ``candidates``: ranks later than the others by "
               "more than the others differ among themselves. If all are equally late, it is 0 for all.",
               &stragglers, {sole<StragglersColumns>()}, Option{"steps", &StragglersOptions::steps},
               Option{"candidates", &StragglersOptions::candidates}),
      shown_only<DiffColumns>("diff"),
      declared("operators",
               "The table that ``key_averages()`` of PyTorch's profiler prints: self and total times, calls, "
               "memory.\n\n"
               "``group_by``: \"name\", and optionally \"input_shapes\" and \"stack\" (the innermost "
               "``stack_frames`` Python frames). Raises UsageError for anything else.",
               &grouped_operators, {sole<OperatorsColumns>()},
               Option{"group_by", &GroupedOperators::group_by, true},
               Option{"stack_frames", &GroupedOperators::stack_frames}),
      declared(
          "roofline",
          "How near operators come to the device's peak: FLOPs, bytes, rates, what limits at each shape.\n\n"
          "``peak_tflops``, ``peak_gbps``: of the device, instead of its vendor's (dense, of the inputs' "
          "type). Needs shapes: ``record_shapes=True``.",
          &roofline, {sole<RooflineColumns>()}, Option{"peak_tflops", &RooflineOptions::peak_tflops},
          Option{"peak_gbps", &RooflineOptions::peak_gbps}),
      declared("memory",
               "The most memory at once, when, in which step and operator: by device, with "
               "``profile_memory=True``.\n\n`MemorySnapshot` says who held it.",
               &of_scope<&memory_use>, {sole<MemoryUseColumns>()}),
      made_elsewhere("critical_path",
                     {{"path", shape_of<CriticalPathColumns>(), "critical_path"},
                      {"summary", shape_of<CriticalPathSummaryColumns>(), "critical_path_summary"},
                      {"nodes", shape_of<CriticalPathNodesColumns>(), "critical_path_nodes"},
                      {"edges", shape_of<CriticalPathEdgesColumns>(), "critical_path_edges"}}),
      declared(
          "step_breakdown",
          "Each step by the roles of PyTorch's TensorBoard plugin, and their means. `Trace.advice` says what "
          "stands out.",
          +[](Traces traces, const Everything&) { return step_breakdown(traces); },
          {part<StepBreakdownColumns>("steps", &StepBreakdown::steps, "step_breakdown"),
           part<StepBreakdownAverageColumns>("average", &StepBreakdown::average)}),
      made_elsewhere("step_points",
                     {{"steps", shape_of<StepPointsColumns>(), "step_trace"},
                      {"average", shape_of<StepPointsAverageColumns>(), "step_trace_average"}}),
      made_elsewhere("device_idle", {{"steps", shape_of<DeviceIdleColumns>(), "device_idle_steps"},
                                     {"total", shape_of<DeviceIdleTotalColumns>(), "device_idle"}}),
      made_elsewhere("cluster",
                     {{"step_time", shape_of<ClusterStepTimeColumns>(), "cluster_step_time"},
                      {"gaps", shape_of<ClusterGapsColumns>(), "cluster_gaps"},
                      {"communication", shape_of<ClusterCommunicationColumns>(), "cluster_communication"},
                      {"matrix", shape_of<ClusterMatrixColumns>(), "cluster_matrix"},
                      {"slow_ranks", shape_of<ClusterSlowRanksColumns>(), "cluster_slow_ranks"},
                      {"slow_links", shape_of<ClusterSlowLinksColumns>(), "cluster_slow_links"}}),
      shown_only<CommunicationColumns>("table(communication)"),
      shown_only<CommunicationBandwidthColumns>("table(communication_bandwidth)"),
      shown_only<CommunicationMatrixColumns>("table(communication_matrix)"),
      shown_only<KernelDetailsColumns>("table(kernel_details)"),
      shown_only<ApiStatisticColumns>("table(api_statistic)"),
      shown_only<CountersColumns>("table(counters)"),
  };
}

std::vector<DeclaredAnalysis<Snapshot>> declared_memory_analyses() {
  using namespace device_memory;
  return {
      declared(
          "peak",
          "The most memory at once: how much, when, in which step, and what was there before the recording.",
          &of_snapshot<&peak>, {sole<PeakColumns>()}),
      declared(
          "holders",
          "Who holds the memory of the peak: the innermost function outside of PyTorch, or ``backward``.",
          &of_snapshot<&holders>, {sole<HoldersColumns>()}),
      declared("fragmentation",
               "The parts of the reserved memory: in use, rounded up, free between blocks, free as a whole.",
               &of_snapshot<&fragmentation>, {sole<FragmentationColumns>()}),
      declared("oom",
               "Requests that failed: ``verdict`` says why, ``cure`` what to do.\n\n"
               "``device_bytes``: the size of the device's memory, which a snapshot lacks. With it, memory "
               "of other processes is seen.",
               &requests_that_failed, {sole<OutOfMemoryColumns>()},
               Option{"device_bytes", &OutOfMemoryOptions::device_bytes}),
      declared("growth", "Places that hold more memory from step to step: a leak, if it grew in every step.",
               &of_snapshot<&growth>, {sole<GrowthColumns>()}),
      declared("over_time",
               "Who holds how much while the events go by: the highest level of each of ``moments`` parts of "
               "them.\n\n"
               "``places``: those that hold most at the peak have rows of their own, all else is \"others\".",
               &over_time, {sole<OverTimeColumns>()}, Option{"moments", &OverTimeOptions::moments},
               Option{"places", &OverTimeOptions::places}),
      declared("actions", "The recorded events by kind: how many, and their bytes.", &of_snapshot<&actions>,
               {sole<ActionsColumns>()}),
  };
}

}  // namespace headrace::analysis::device
