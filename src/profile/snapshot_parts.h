// The parts of a profile that read_profile() puts together. Their sources are snapshot_<part>.cc, item_flow.cc and
// reconciled_cpu.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/profile/figures.h"
#include "headrace/profile/graph.h"
#include "headrace/profile/profile.h"
#include "headrace/profile/remote_profile.h"

namespace headrace::profile {

// --- from nanoseconds and counts to seconds and shares ---

/// Seconds in a nanosecond.
inline constexpr double kSecond = 1e-9;

/// Within 0 and 1, and 0 if there is no whole.
inline double share(double part, double whole) { return whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0; }

/// Looks at threads that are needed to say what share of their time they waited for a lock or for storage.
inline constexpr double kMinSamples = 10;

// --- parts ---

/// `since_ns`: the loop time at which `figures` begin.
SinkProfile sink_of(const LoaderRecord& record, const SegmentFigures& figures, std::int64_t since_ns);

/// Sums to the GetNext wait.
std::vector<LedgerRow> stall_ledger_of(const LoaderRecord& record, const SegmentFigures& figures,
                                       const Graph& graph);

/// Items of an operator for one batch: against the batches that were made, not those that were used, so that
/// what was made ahead counts for nothing. `joined`: batches of its own that one of the loop's is made of.
double loader_items_per_batch(const SegmentFigures& figures, const Graph& graph, const GraphNode& node,
                              double joined);

/// Rows of the same worker of different epochs become one.
void merge_worker_rows(std::vector<WorkerProfile>& rows);

/// A loader's model, by its own graph; empty if its adapter gave none.
std::optional<LoaderModel> model_of(const LoaderRecord& loader);

/// The parameter behind a queue of a framework's loader (value 0: it has none); empty for any other queue.
std::optional<Parameter> loader_queue_parameter(const QueueRecord& queue, double capacity,
                                                const std::optional<LoaderModel>& model);

/// A stage reads a stream that its workers share out among them.
bool is_stream(const std::optional<LoaderModel>& model) noexcept;

/// Sets the operators of each stage of the profile's model.
void fill_stages(const Graph& graph, Profile& profile);

/// The model's stage of a node; null if it is of none.
const LoaderStage* stage_of(const GraphNode& node, const std::optional<LoaderModel>& model) noexcept;

/// Parameters of an operator of the model's stages: what sets its workers, and what else is of its stage.
std::vector<Parameter> stage_parameters(const LoaderModel& model, const GraphNode& node);

/// The parameter's name in an operator's record, and the most workers that can be busy: "x<=8" is x, 8.
std::pair<std::string, std::optional<double>> split_parameter(std::string_view parameter);

/// The value of a name among what was seen while the loader ran (lines "name=value" of its record); "" if none.
std::string_view fact_of(const LoaderRecord& loader, std::string_view name);
void add_loader_facts(const LoaderRecord& loader, const SegmentFigures& figures, Profile& profile);
void add_loader_notes(const LoaderRecord& loader, Profile& profile);

/// `owner`: 1 + operator, or RemoteCell::kOfNoOperator. Empty: there were none.
std::optional<Remote> remote_of(const SegmentFigures& figures, std::uint32_t owner);

/// Fills profile.host; what the machine could not give stays empty.
void add_host(const SegmentImage& image, const SegmentFigures& figures, Profile& profile);

/// Host figures of window `k` of width `width` (ns of loop time).
WindowHost host_window(const SegmentImage& image, std::int64_t k, std::int64_t width);

/// Aligns the windows of all cells and adds them to `profile`, whose operators and queues are
/// complete and in the order of `graph`. Windows that began before loop time `from_ns` are left out.
void add_windows(const SegmentImage& image, std::uint32_t loader, const SegmentFigures& figures,
                 const Graph& graph, std::int64_t from_ns, Profile& profile);

// --- CPU time ---

/// CPU time is read for a part of the items only. Where those are not like the others (a stream that computes
/// for 256 items and then hands them out one by one), their share of CPU time is not the whole's. What a
/// thread's operators use together is known from its clock: their figures are changed so that they add up to
/// it, those with such items first. Threads that wait for processes which do the work are left alone: what
/// those processes measured is in no clock of the thread.
void reconcile_cpu(SegmentFigures& figures, std::span<const OperatorRecord> operators);

/// CPU time of the whole cell, if its other items are like the sampled ones.
double estimated_cpu_ns(const CellFigures& cell);

/// Nanoseconds per cell: by busy time, and never more of it than was off a core. The scheduler counts the waits of a
/// thread, not of an operator. 0 where it said nothing.
std::vector<double> run_queue_waits_ns(const SegmentFigures& figures);

// --- items and states ---

/// Ratios come from the totals behind an operator, up to the sink, so they do not depend on what was
/// prefetched. Holds references: the figures and the graph must outlive it and be complete when it is first
/// asked.
class ItemFlow {
 public:
  ItemFlow(const SegmentFigures& figures, const Graph& graph) : figures_(figures), graph_(graph) {}

  double items_per_batch(const GraphNode& node);
  double items_per_batch(const GraphQueue& queue);

  /// The recording of a queue; null if there is none.
  const QueueFigures* figures_of(std::uint32_t queue) const;

 private:
  double count_items_per_batch(const GraphQueue& queue);
  double per_step(double items) const;
  const GraphQueue* queue_of(std::uint32_t number) const;

  const SegmentFigures& figures_;
  const Graph& graph_;
  /// Remembered per queue: branches that meet again are counted once, and a cycle (items that go round) ends.
  std::map<std::uint32_t, double> known_;
};

/// States of a stage, busy for `busy_ns` of its workers' `present_ns`. The threads of an executor that several
/// stages share show nothing of one stage's waits; its queues do.
States stage_states_ns(const GraphNode& node, const ItemFlow& flow, double busy_ns, double present_ns);

/// Figures of an operator without timed calls: those that nothing shows are absent. If the queues around it
/// were read often enough, it was at work while it had input and room for output: at least for what their
/// empty and full times leave. `present_s`: of one worker; `batches`: delivered in that time.
void make_untimed(const GraphNode& node, const ItemFlow& flow, double present_s, double batches,
                  OperatorProfile& out);

}  // namespace headrace::profile
