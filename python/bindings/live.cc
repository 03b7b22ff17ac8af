// Totals of running loops, and what differences of them say. Crossing only.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

#include "crossing.h"
#include "headrace/analysis/cluster/straggler_watch.h"
#include "headrace/analysis/read/exposed_wait.h"
#include "headrace/profile/loop_totals.h"
#include "headrace/profile/segment_image.h"
#include "interpreter_lock.h"

namespace py = pybind11;
using namespace py::literals;

namespace headrace::python {

namespace {

using analysis::cluster::Straggler;
using analysis::cluster::StragglerWatch;
using metrics::LatencyBuckets;
using profile::LoopTotals;

/// Upper ends in seconds and counts of the buckets that are not empty; the sum.
py::tuple histogram_tuple(const LoopTotals::Histogram& histogram) {
  py::list buckets;
  for (int i = 0; i < LatencyBuckets::kCount; ++i) {
    const std::uint64_t count = histogram.buckets[static_cast<std::size_t>(i)];
    if (count == 0) continue;
    const double lower_s = LatencyBuckets::lower_ns(i) * 1e-9;
    const double upper_s = (LatencyBuckets::lower_ns(i) + LatencyBuckets::width_ns(i)) * 1e-9;
    buckets.append(py::make_tuple(lower_s, upper_s, count));
  }
  return py::make_tuple(buckets, histogram.sum_s);
}

py::object straggler_of(const StragglerWatch& watch) {
  const std::optional<Straggler>& found = watch.straggler();
  if (!found) return py::none();
  py::dict one("rank"_a = found->rank, "chronic"_a = found->chronic, "z"_a = found->z,
               "slowest"_a = found->slowest, "blocks"_a = found->blocks, "late_s"_a = found->late_s,
               "late_share"_a = found->late_share,
               "by"_a = std::string(names_of(found->by)[static_cast<std::size_t>(found->by)]));
  return one;
}

}  // namespace

void add_live(PyObject* into) {
  py::module_ module = py::reinterpret_borrow<py::module_>(into);
  py::class_<LoopTotals>(
      module, "LoopTotals",
      "Counters of a loop at one moment, as declared in profile/loop_totals.h. Times are seconds.")
      .def_readonly("rank", &LoopTotals::rank)
      .def_readonly("running", &LoopTotals::running)
      .def_readonly("ended", &LoopTotals::ended)
      .def_readonly("died", &LoopTotals::died)
      .def_readonly("at_s", &LoopTotals::at_s)
      .def_readonly("steps", &LoopTotals::steps)
      .def_readonly("wait_s", &LoopTotals::wait_s)
      .def_readonly("stalled_s", &LoopTotals::stalled_s)
      .def_readonly("recent_s", &LoopTotals::recent_s)
      .def(
          "waits", [](const LoopTotals& totals) { return histogram_tuple(totals.waits); },
          "-> tuple[list[tuple[float, float, int]], float]\nLower and upper end and count of the buckets "
          "that are not empty, and the sum: of GetNext waits.")
      .def(
          "step_times", [](const LoopTotals& totals) { return histogram_tuple(totals.step_times); },
          "-> tuple[list[tuple[float, float, int]], float]\nAs `waits`, for step times.");
  module.def("loop_totals", &profile::loop_totals, py::arg("image"), py::arg("loader"),
             py::call_guard<LockReleased>());
  module.def(
      "exposed_wait",
      [](const LoopTotals* since, const LoopTotals& now) {
        const analysis::ExposedWait found =
            since == nullptr ? analysis::exposed_wait(now) : analysis::exposed_wait(*since, now);
        return py::make_tuple(found.share, found.over_s);
      },
      py::arg("since").none(true), py::arg("now"),
      "exposed_wait(since: LoopTotals | None, now: LoopTotals) -> tuple[float, float]\nShare of the time, "
      "and how long that is; None: of the last minute or the last 512 steps.");
  py::class_<StragglerWatch>(
      module, "StragglerWatch",
      "Which rank holds the others up, as declared in analysis/cluster/straggler_watch.h. Not thread-safe.")
      .def(py::init<>())
      .def(
          "look",
          [](StragglerWatch& watch, double now_s, const std::vector<LoopTotals>& ranks) {
            watch.look(now_s, ranks);
            return straggler_of(watch);
          },
          py::arg("now_s"), py::arg("ranks"),
          "-> dict[str, Any] | None\nThe totals of one loader on each rank; \"rank\", \"chronic\", \"z\", "
          "\"slowest\", \"blocks\", \"late_s\", \"late_share\", \"by\".");
}

}  // namespace headrace::python
