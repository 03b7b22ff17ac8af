// The ranks of a job beside each other. Crossing only.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "column_set.h"
#include "crossing.h"
#include "device_trace.h"
#include "headrace/analysis/cluster/heat_map.h"
#include "headrace/analysis/cluster/link_records.h"
#include "headrace/analysis/cluster/links.h"
#include "headrace/analysis/cluster/slow_ranks.h"
#include "headrace/analysis/cluster/stages.h"
#include "headrace/trace/process_groups.h"

namespace py = pybind11;
using namespace py::literals;

namespace headrace::python {

namespace cluster = analysis::cluster;

namespace {

/// A block of memory as numbers, in the machine's byte order. Bytes at its end that make no number are ignored.
template <class To, class From>
std::vector<To> numbers_of(std::string_view bytes) {
  std::vector<From> read(bytes.size() / sizeof(From));
  std::memcpy(read.data(), bytes.data(), read.size() * sizeof(From));
  return {read.begin(), read.end()};
}

/// Rank, stage, the columns step, total_s, own_s, and input_s.
using RankColumns =
    std::vector<std::tuple<std::int64_t, std::int64_t, py::bytes, py::bytes, py::bytes, double>>;

std::vector<cluster::RankSteps> ranks_of(const RankColumns& columns) {
  std::vector<cluster::RankSteps> ranks;
  ranks.reserve(columns.size());
  for (const auto& [rank, stage, step, total_s, own_s, input_s] : columns) {
    ranks.push_back({rank, numbers_of<std::int64_t, std::int64_t>(step), numbers_of<double, float>(total_s),
                     numbers_of<double, float>(own_s), stage, input_s});
  }
  return ranks;
}

py::dict to_dict(const cluster::SlowRank& slow) {
  py::dict one("rank"_a = slow.rank, "mean_late_s"_a = slow.mean_late_s, "margin"_a = slow.margin,
               "late_share"_a = slow.late_share, "steady"_a = slow.steady, "slowest"_a = slow.slowest,
               "judged"_a = slow.judged, "z"_a = slow.z, "since_step"_a = slow.since_step,
               "from_the_start"_a = slow.from_the_start, "period_steps"_a = slow.period_steps,
               "gain_share"_a = slow.gain_share);
  return one;
}

py::dict to_dict(const cluster::SlowRanks& found) {
  py::list slow, ranks;
  for (const cluster::SlowRank& each : found.slow) slow.append(to_dict(each));
  for (const cluster::RankLateness& each : found.ranks) {
    ranks.append(py::make_tuple(each.rank, each.steps, each.step_s, each.own_s, each.late_s, each.late_share,
                                each.last_share));
  }
  py::dict answer("verdict"_a = std::string(cluster::name_of(found.verdict)), "steps"_a = found.steps,
                  "step_s"_a = found.step_s, "spread_s"_a = found.spread_s, "noise_s"_a = found.noise_s,
                  "gain_share"_a = found.gain_share, "pausing_ranks"_a = found.pausing_ranks, "slow"_a = slow,
                  "ranks"_a = ranks);
  return answer;
}

py::dict to_dict(const cluster::Link& link) {
  py::dict one("kind"_a = link.kind, "ranks"_a = link.members, "is_pair"_a = link.is_pair,
               "slow"_a = link.slow, "bandwidth_gbps"_a = link.bandwidth_gbps,
               "usual_gbps"_a = link.usual_gbps, "latency_s"_a = link.latency_s,
               "usual_latency_s"_a = link.usual_latency_s, "calls"_a = link.calls, "bytes"_a = link.bytes,
               "busy_s"_a = link.busy_s, "excess_s"_a = link.excess_s);
  return one;
}

}  // namespace

void add_cluster(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  module.def(
      "link_text",
      [](const TraceSet set, const std::optional<trace::ascend::ProfileFolder>& profile,
         std::vector<std::int64_t> steps) {
        const LockReleased released;
        std::vector<std::string> notes;
        std::string text = cluster::to_text(
            cluster::link_records(set.traces()[0], profile ? &*profile : nullptr, std::move(steps), notes));
        return std::pair(std::move(text), std::move(notes));
      },
      py::arg("traces"), py::arg("profile"), py::arg("steps"),
      "The first rank's records of links, as declared in analysis/cluster/link_records.h, and notes.");
  module.def(
      "parallel_places",
      [](const TraceSet set, const std::optional<trace::ascend::ProfileFolder>& profile, std::int64_t rank) {
        std::vector<trace::ProcessGroup> groups = trace::process_groups(set.traces()[0].file);
        if (groups.empty() && profile) groups = trace::process_groups(*profile);
        std::vector<std::tuple<std::string, std::int64_t, std::int64_t>> places;
        for (trace::ParallelPlace& each : trace::places_of(groups, rank))
          places.emplace_back(std::move(each.role), each.index, each.size);
        return places;
      },
      py::arg("traces"), py::arg("profile"), py::arg("rank"),
      "Role, index and size of the rank's groups, as declared in trace/process_groups.h.");
  module.def(
      "judge_links",
      [](const std::vector<std::pair<std::int64_t, std::string>>& ranks) {
        cluster::Links found;
        {
          const LockReleased released;
          std::vector<cluster::LinkRecord> records;
          for (const auto& [rank, text] : ranks) cluster::add_link_records(text, rank, records);
          found = cluster::judge_links(records);
        }
        py::list links;
        for (const cluster::Link& each : found.links) links.append(to_dict(each));
        py::dict answer("links"_a = links, "common_rank"_a = found.common_rank, "unknown"_a = found.unknown);
        return answer;
      },
      py::arg("ranks"), "Links of a job by rank and `link_text`, as declared in analysis/cluster/links.h.");
  module.def("ranks_of_text", &cluster::ranks_of_text, py::arg("text"),
             "Ranks of \"0-7\", \"0-56/8\", \"1,4,9\"; empty for other texts.");
  module.def(
      "stage_balance",
      [](const RankColumns& columns) {
        const cluster::StageBalance found = cluster::stage_balance(ranks_of(columns));
        py::list stages;
        for (const cluster::Stage& each : found.stages)
          stages.append(py::make_tuple(each.stage, each.ranks, each.own_s, each.beyond_share));
        py::dict answer("stages"_a = stages, "uneven"_a = found.uneven, "longest"_a = found.longest,
                        "gain_share"_a = found.gain_share);
        return answer;
      },
      py::arg("ranks"),
      "As declared in analysis/cluster/stages.h; ``stages`` has tuples: stage, ranks, own_s, beyond_share.");
  module.def(
      "slow_ranks",
      [](const RankColumns& columns) {
        const std::vector<cluster::RankSteps> ranks = ranks_of(columns);
        cluster::SlowRanks found;
        {
          const LockReleased released;
          found = cluster::slow_ranks(ranks);
        }
        return to_dict(found);
      },
      py::arg("ranks"),
      "The verdict on a job, as declared in analysis/cluster/slow_ranks.h.\n``ranks`` has tuples: rank, "
      "steps, step_s, own_s, late_s, late_share, last_share.");
  module.def(
      "in_step", [](const RankColumns& columns) { return cluster::in_step(ranks_of(columns)); },
      py::arg("ranks"),
      "Whether the ranks meet in every step, as declared in analysis/cluster/slow_ranks.h.");
  module.def(
      "step_without",
      [](const RankColumns& columns, const std::vector<std::int64_t>& without) {
        return cluster::step_without(ranks_of(columns), without);
      },
      py::arg("ranks"), py::arg("without"));
  module.def(
      "lateness",
      [](const RankColumns& columns, const std::vector<std::int64_t>& steps) {
        return cluster::lateness(ranks_of(columns), steps);
      },
      py::arg("ranks"), py::arg("steps"),
      "How late each rank is in each of the steps, rank by rank; NaN where it has no such step.");
  module.def(
      "heat_map",
      [](const RankColumns& columns, const std::vector<std::int64_t>& only) {
        const std::vector<cluster::RankSteps> ranks = ranks_of(columns);
        const LockReleased released;
        cluster::HeatMapOptions options;
        options.only = only;
        cluster::HeatMap map = cluster::heat_map(ranks, options);
        return std::make_tuple(std::move(map.rows), std::move(map.columns), std::move(map.late_share));
      },
      py::arg("ranks"), py::arg("only"),
      "Rows, columns and lateness row by row, as declared in analysis/cluster/heat_map.h.");
}

}  // namespace headrace::python
