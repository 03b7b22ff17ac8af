// The parts of a profile that read_profile() puts together. Each has its own source, snapshot_<part>.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/profile/figures.h"
#include "headrace/profile/graph.h"
#include "headrace/profile/profile.h"
#include "headrace/profile/remote_profile.h"

namespace headrace::profile {

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

}  // namespace headrace::profile
