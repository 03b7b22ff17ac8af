#include "headrace/analysis/device/declared_tables.h"

#include "analysis/device/communication_tables.h"
#include "analysis/device/database_kernels.h"
#include "analysis/device/database_tables.h"
#include "headrace/analysis/device/advice.h"
#include "headrace/analysis/device/annotations.h"
#include "headrace/analysis/device/cluster.h"
#include "headrace/analysis/device/collectives.h"
#include "headrace/analysis/device/critical_path.h"
#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/device/diff.h"
#include "headrace/analysis/device/idle_breakdown.h"
#include "headrace/analysis/device/kernels.h"
#include "headrace/analysis/device/launches.h"
#include "headrace/analysis/device/memory_bandwidth.h"
#include "headrace/analysis/device/memory_use.h"
#include "headrace/analysis/device/operators.h"
#include "headrace/analysis/device/queue_length.h"
#include "headrace/analysis/device/roofline.h"
#include "headrace/analysis/device/sequences.h"
#include "headrace/analysis/device/step_breakdown.h"
#include "headrace/analysis/device/step_points.h"
#include "headrace/analysis/device/step_time.h"
#include "headrace/analysis/device/steps.h"
#include "headrace/analysis/device/stragglers.h"
#include "headrace/analysis/device/time_breakdown.h"
#include "headrace/analysis/device_memory/actions.h"
#include "headrace/analysis/device_memory/fragmentation.h"
#include "headrace/analysis/device_memory/growth.h"
#include "headrace/analysis/device_memory/holders.h"
#include "headrace/analysis/device_memory/out_of_memory.h"
#include "headrace/analysis/device_memory/over_time.h"
#include "headrace/analysis/device_memory/peak.h"

namespace headrace::analysis::device {

std::vector<DeclaredTable> declared_tables() {
  return {
      {"time_breakdown", shape_of<TimeBreakdownColumns>()},
      {"overlap", shape_of<OverlapColumns>()},
      {"kernel_breakdown", shape_of<KernelBreakdownColumns>()},
      {"kernels", shape_of<KernelsColumns>()},
      {"steps", shape_of<StepsColumns>()},
      {"step_time", shape_of<StepTimeTableColumns>()},
      {"advice", shape_of<AdviceColumns>()},
      {"idle_breakdown.idle", shape_of<IdleBreakdownColumns>()},
      {"idle_breakdown.intervals", shape_of<IdleIntervalsColumns>()},
      {"queue_length.summary", shape_of<QueueLengthColumns>()},
      {"queue_length.series", shape_of<QueueLengthSeriesColumns>()},
      {"launches", shape_of<LaunchesColumns>()},
      {"memory_bandwidth.summary", shape_of<MemoryBandwidthColumns>()},
      {"memory_bandwidth.series", shape_of<MemoryBandwidthSeriesColumns>()},
      {"annotations.ranges", shape_of<AnnotationsColumns>()},
      {"annotations.kernels", shape_of<AnnotationKernelsColumns>()},
      {"sequences(name)", shape_of<SequencesColumns>()},
      {"sequences", shape_of<OperatorSequencesColumns>()},
      {"collectives", shape_of<CollectivesColumns>()},
      {"stragglers", shape_of<StragglersColumns>()},
      {"diff", shape_of<DiffColumns>()},
      {"operators", shape_of<OperatorsColumns>()},
      {"roofline", shape_of<RooflineColumns>()},
      {"memory", shape_of<MemoryUseColumns>()},
      {"critical_path.path", shape_of<CriticalPathColumns>()},
      {"critical_path.summary", shape_of<CriticalPathSummaryColumns>()},
      {"critical_path.nodes", shape_of<CriticalPathNodesColumns>()},
      {"critical_path.edges", shape_of<CriticalPathEdgesColumns>()},
      {"step_breakdown.steps", shape_of<StepBreakdownColumns>()},
      {"step_breakdown.average", shape_of<StepBreakdownAverageColumns>()},
      {"step_points.steps", shape_of<StepPointsColumns>()},
      {"step_points.average", shape_of<StepPointsAverageColumns>()},
      {"device_idle.steps", shape_of<DeviceIdleColumns>()},
      {"device_idle.total", shape_of<DeviceIdleTotalColumns>()},
      {"cluster.step_time", shape_of<ClusterStepTimeColumns>()},
      {"cluster.gaps", shape_of<ClusterGapsColumns>()},
      {"cluster.communication", shape_of<ClusterCommunicationColumns>()},
      {"cluster.matrix", shape_of<ClusterMatrixColumns>()},
      {"cluster.slow_ranks", shape_of<ClusterSlowRanksColumns>()},
      {"cluster.slow_links", shape_of<ClusterSlowLinksColumns>()},
      {"table(communication)", shape_of<CommunicationColumns>()},
      {"table(communication_bandwidth)", shape_of<CommunicationBandwidthColumns>()},
      {"table(communication_matrix)", shape_of<CommunicationMatrixColumns>()},
      {"table(kernel_details)", shape_of<KernelDetailsColumns>()},
      {"table(api_statistic)", shape_of<ApiStatisticColumns>()},
      {"table(counters)", shape_of<CountersColumns>()},
      {"MemorySnapshot.peak", shape_of<device_memory::PeakColumns>()},
      {"MemorySnapshot.holders", shape_of<device_memory::HoldersColumns>()},
      {"MemorySnapshot.fragmentation", shape_of<device_memory::FragmentationColumns>()},
      {"MemorySnapshot.oom", shape_of<device_memory::OutOfMemoryColumns>()},
      {"MemorySnapshot.growth", shape_of<device_memory::GrowthColumns>()},
      {"MemorySnapshot.over_time", shape_of<device_memory::OverTimeColumns>()},
      {"MemorySnapshot.actions", shape_of<device_memory::ActionsColumns>()},
  };
}

}  // namespace headrace::analysis::device
