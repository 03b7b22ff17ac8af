// Ascend profiles: their folders and tables. Crossing only.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "column_set.h"
#include "crossing.h"
#include "device_trace.h"
#include "headrace/analysis/device/advice.h"
#include "headrace/analysis/device/cluster.h"
#include "headrace/analysis/device/profile_table.h"
#include "headrace/trace/ascend/profile_folder.h"

namespace py = pybind11;

namespace headrace::python {

namespace ascend = trace::ascend;
namespace device = analysis::device;

namespace {

using Profiles = std::vector<ascend::ProfileFolder>;

}  // namespace

void add_ascend(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  py::class_<ascend::ProfileFolder>(
      module, "ProfileFolder",
      "A folder that an Ascend profiler wrote. Files that it does not have are empty.")
      .def_readonly("path", &ascend::ProfileFolder::path)
      .def_readonly("output", &ascend::ProfileFolder::output)
      .def_readonly("rank", &ascend::ProfileFolder::rank)
      .def_readonly("trace_view", &ascend::ProfileFolder::trace_view)
      .def_readonly("database", &ascend::ProfileFolder::database)
      .def_property_readonly("events_file", &ascend::ProfileFolder::events_file);
  module.def("find_profiles", &ascend::find_profiles, py::arg("path"), py::call_guard<LockReleased>());
  module.def(
      "advice",
      [](const TraceSet set, const Profiles& profiles) {
        return without_lock([&] { return shared(device::advice(set.traces(), profiles)); });
      },
      py::arg("traces"), py::arg("profiles"));
  module.def("has_cluster_summary", &device::has_cluster_summary, py::arg("folder"),
             py::call_guard<LockReleased>());
  module.def(
      "cluster",
      [](const TraceSet set, const Profiles& profiles, const std::string& summary) {
        const LockReleased released;
        device::ClusterTables tables =
            device::cluster_tables(summary.empty() ? device::cluster_of(set.traces(), profiles)
                                                   : device::read_cluster_summary(summary));
        return std::make_tuple(shared(std::move(tables.step_time)), shared(std::move(tables.gaps)),
                               shared(std::move(tables.communication)), shared(std::move(tables.matrix)),
                               shared(std::move(tables.slow_ranks)), shared(std::move(tables.slow_links)));
      },
      py::arg("traces"), py::arg("profiles"), py::arg("summary"));
  module.def(
      "profile_tables", [](const Profiles& profiles) { return device::profile_tables(profiles); },
      py::arg("profiles"), py::call_guard<LockReleased>());
  module.def(
      "profile_table",
      [](const Profiles& profiles, const std::string& name) {
        return shared(device::profile_table(profiles, name));
      },
      py::arg("profiles"), py::arg("name"), py::call_guard<LockReleased>());
  module.def("profile_of", &ascend::profile_of, py::arg("file"), py::call_guard<LockReleased>());
}

}  // namespace headrace::python
