// The critical path of a device trace, and the graph that it runs through. Crossing only.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "column_set.h"
#include "crossing.h"
#include "device_trace.h"
#include "headrace/analysis/device/critical_path.h"

namespace py = pybind11;

namespace headrace::python {
namespace {

namespace device = analysis::device;

/// A path and its tables; `CriticalPath` of the package.
struct FoundPath {
  device::CriticalPath path;
  std::shared_ptr<ColumnSet> table;
  std::shared_ptr<ColumnSet> summary;
};

FoundPath find(const TraceSet set, const device::CriticalPathOptions& options) {
  const LockReleased released;
  FoundPath found{device::critical_path(set.traces()[0], options), nullptr, nullptr};
  found.table = shared(std::move(found.path.path));
  found.summary = shared(std::move(found.path.summary));
  return found;
}

}  // namespace

void add_critical_path(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  py::class_<FoundPath>(module, "CriticalPath",
                        "The longest path through what happened on host and device, of one rank.")
      .def_property_readonly("path", [](const FoundPath& self) { return self.table; })
      .def_property_readonly("summary", [](const FoundPath& self) { return self.summary; })
      .def_property_readonly("length_ns", [](const FoundPath& self) { return self.path.length_ns; })
      .def_property_readonly("valid", [](const FoundPath& self) { return self.path.valid(); })
      .def("nodes", [](const FoundPath& self) { return shared(device::nodes_table(self.path.graph)); })
      .def("edges", [](const FoundPath& self) { return shared(device::edges_table(self.path)); });
  // None and empty are the core's defaults.
  module.def(
      "critical_path",
      [](const TraceSet& set, std::vector<std::int64_t> steps, std::string annotation,
         std::optional<std::pair<std::size_t, std::size_t>> instances,
         std::vector<std::string> data_load_events, bool zero_weight_launch_edges,
         std::optional<std::int64_t> until_ns, std::vector<std::string> lock_calls,
         std::vector<std::string> blocking_calls) {
        device::CriticalPathOptions options;
        options.scope.steps = std::move(steps);
        if (until_ns) options.scope.end_ns = *until_ns;
        options.scope.keep_cut_off_step = until_ns.has_value();  // the caller has decided already
        options.annotation = std::move(annotation);
        if (instances) std::tie(options.first_instance, options.last_instance) = *instances;
        if (!data_load_events.empty()) options.data_load_events = std::move(data_load_events);
        options.zero_weight_launch_edges = zero_weight_launch_edges;
        if (!lock_calls.empty()) options.lock_calls = std::move(lock_calls);
        if (!blocking_calls.empty()) options.blocking_calls = std::move(blocking_calls);
        return find(set, options);
      },
      py::arg("traces"), py::arg("steps"), py::arg("annotation"), py::arg("instances"),
      py::arg("data_load_events"), py::arg("zero_weight_launch_edges") = false,
      py::arg("until_ns") = py::none(), py::arg("lock_calls") = std::vector<std::string>(),
      py::arg("blocking_calls") = std::vector<std::string>());
}

}  // namespace headrace::python
