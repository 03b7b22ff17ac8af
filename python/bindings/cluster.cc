// The ranks of a job beside each other. Crossing only.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "crossing.h"
#include "headrace/analysis/cluster/heat_map.h"
#include "headrace/analysis/cluster/slow_ranks.h"
#include "headrace/report/cluster.h"

namespace py = pybind11;

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

using RankColumns = std::vector<std::tuple<std::int64_t, py::bytes, py::bytes, py::bytes>>;

std::vector<cluster::RankSteps> ranks_of(const RankColumns& columns) {
  std::vector<cluster::RankSteps> ranks;
  ranks.reserve(columns.size());
  for (const auto& [rank, step, total_s, own_s] : columns) {
    ranks.push_back({rank, numbers_of<std::int64_t, std::int64_t>(step), numbers_of<double, float>(total_s),
                     numbers_of<double, float>(own_s)});
  }
  return ranks;
}

py::dict to_dict(const cluster::SlowRank& slow) {
  py::dict one;
  one["rank"] = slow.rank;
  one["mean_late_s"] = slow.mean_late_s;
  one["margin"] = slow.margin;
  one["late_share"] = slow.late_share;
  one["steady"] = slow.steady;
  one["since_step"] = slow.since_step;
  one["from_the_start"] = slow.from_the_start;
  one["period_steps"] = slow.period_steps;
  one["gain_share"] = slow.gain_share;
  return one;
}

py::dict to_dict(const cluster::SlowRanks& found) {
  py::list slow, ranks;
  for (const cluster::SlowRank& each : found.slow) slow.append(to_dict(each));
  for (const cluster::RankLateness& each : found.ranks) {
    ranks.append(py::make_tuple(each.rank, each.steps, each.step_s, each.own_s, each.late_s, each.late_share,
                                each.last_share));
  }
  py::dict answer;
  answer["verdict"] = std::string(cluster::name_of(found.verdict));
  answer["steps"] = found.steps;
  answer["step_s"] = found.step_s;
  answer["spread_s"] = found.spread_s;
  answer["noise_s"] = found.noise_s;
  answer["gain_share"] = found.gain_share;
  answer["pausing_ranks"] = found.pausing_ranks;
  answer["slow"] = slow;
  answer["ranks"] = ranks;
  return answer;
}

}  // namespace

void add_cluster(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  py::class_<report::ClusterPage>(module, "ClusterPage")
      .def(py::init<>())
      .def_readwrite("title", &report::ClusterPage::title)
      .def_readwrite("kind", &report::ClusterPage::kind)
      .def_readwrite("is_bad", &report::ClusterPage::is_bad)
      .def_readwrite("summary", &report::ClusterPage::summary)
      .def_readwrite("why", &report::ClusterPage::why)
      .def_readwrite("advice", &report::ClusterPage::advice)
      .def_readwrite("columns", &report::ClusterPage::columns)
      .def_readwrite("rows", &report::ClusterPage::rows)
      .def_readwrite("remarks", &report::ClusterPage::remarks);
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
      py::arg("ranks"));
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
      py::arg("ranks"), py::arg("steps"));
  module.def(
      "cluster_page",
      [](const RankColumns& columns, const std::vector<std::int64_t>& worst, report::ClusterPage page) {
        const std::vector<cluster::RankSteps> ranks = ranks_of(columns);
        const LockReleased released;
        page.map = cluster::heat_map(ranks);
        cluster::HeatMapOptions options;
        options.only = worst;
        if (!worst.empty()) page.worst = cluster::heat_map(ranks, options);
        return report::to_html(page);
      },
      py::arg("ranks"), py::arg("worst"), py::arg("page"));
}

}  // namespace headrace::python
