// The declared tables of device traces and memory snapshots, and analyses that take more than options. Crossing only.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "column_set.h"
#include "crossing.h"
#include "device_trace.h"
#include "headrace/analysis/device/critical_path.h"
#include "headrace/analysis/device/declared_tables.h"
#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/device/operators.h"
#include "headrace/analysis/device/step_points.h"
#include "headrace/memory/snapshot.h"
#include "headrace/profile/errors.h"

namespace py = pybind11;

namespace headrace::python {
namespace {

namespace device = analysis::device;
using Steps = std::vector<std::int64_t>;
using Waits = std::optional<std::vector<std::pair<std::int64_t, std::int64_t>>>;

device::Scope scope_of(Steps steps) {
  device::Scope scope;
  scope.steps = std::move(steps);
  return scope;
}

device::Side side_of(const std::string& name) {
  if (name == "both") return device::Side::both;
  if (name == "host") return device::Side::host;
  if (name == "device") return device::Side::device;
  throw UsageError("side is 'both', 'host' or 'device', not '" + name + "'");
}

/// The type of an option in Python.
const char* type_of(const device::OptionValue& value) {
  return std::visit(
      []<class Value>(const Value&) {
        if (std::is_same_v<Value, bool>) return "bool";
        if (std::is_same_v<Value, double>) return "float";
        if (std::is_same_v<Value, std::optional<double>>) return "float | None";
        if (std::is_same_v<Value, std::optional<std::string>>) return "str | None";
        if (std::is_same_v<Value, std::vector<std::string>>) return "Sequence[str]";
        return std::is_same_v<Value, Steps> ? "Sequence[int] | None" : "int";
      },
      value);
}

/// A tuple for each analysis, as `declared_tables` documents it.
template <class Source>
py::list listed(const std::vector<device::DeclaredAnalysis<Source>>& analyses) {
  py::list list;
  for (const auto& analysis : analyses) {
    py::list options;
    for (const device::DeclaredOption& option : analysis.options)
      options.append(py::make_tuple(option.name, type_of(option.usual), option.usual, option.by_place));
    py::list tables;
    for (const device::DeclaredTable& table : analysis.tables) {
      py::list columns;
      for (const analysis::ColumnShape& column : table.columns)
        columns.append(py::make_tuple(column.name, column.type, column.unit, column.says, column.optional));
      tables.append(py::make_tuple(table.part, table.name, columns));
    }
    list.append(py::make_tuple(analysis.name, analysis.says, options, tables, analysis.make != nullptr));
  }
  return list;
}

/// The tables of an analysis, with the usual value of each option that is not in `given`.
template <class Source>
py::tuple made(const std::vector<device::DeclaredAnalysis<Source>>& analyses, Source source,
               const std::string& name, const py::dict& given) {
  for (const auto& analysis : analyses) {
    if (analysis.name != name) continue;
    std::vector<device::OptionValue> values;
    for (const device::DeclaredOption& option : analysis.options) {
      const py::str key(option.name.data(), option.name.size());
      device::OptionValue& value = values.emplace_back(option.usual);
      if (given.contains(key)) try {
          std::visit([&]<class Value>(Value& own) { own = given[key].template cast<Value>(); }, value);
        } catch (const py::cast_error&) {
          throw UsageError(std::string(option.name) + " cannot be " +
                           py::repr(given[key]).template cast<std::string>());
        }
    }
    py::list tables;
    for (analysis::Table& table : without_lock([&] { return analysis.make(source, values); }))
      tables.append(shared(std::move(table)));
    return py::tuple(tables);
  }
  throw UsageError("no analysis " + name);
}

device::DeviceIdle idle_of(const trace::Trace& trace, const Waits& waits) {
  if (!waits) return device::device_idle(trace, device::loader_waits(trace));
  std::vector<device::Interval> intervals;
  for (const auto& [begin, end] : *waits) intervals.push_back({begin, end});
  return device::device_idle(trace, intervals);
}

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

void add_device_tables(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  module.def("holds_pickle", &memory::holds_pickle, py::arg("path"), py::call_guard<LockReleased>());
  py::class_<memory::Snapshot, std::shared_ptr<memory::Snapshot>>(
      module, "MemorySnapshot", "The columns of a memory snapshot. Read-only, so any thread may use it.")
      .def(py::init([](const std::string& path) {
             return std::make_shared<memory::Snapshot>(memory::read_snapshot(path));
           }),
           py::arg("path"), py::call_guard<LockReleased>())
      .def_readonly("path", &memory::Snapshot::path)
      .def_property_readonly("events",
                             [](const memory::Snapshot& snapshot) { return snapshot.events.count(); })
      .def_property_readonly("segments",
                             [](const memory::Snapshot& snapshot) { return snapshot.segments.size(); });
  static const auto* of_traces = new auto(device::declared_analyses());
  static const auto* of_memory = new auto(device::declared_memory_analyses());
  module.def(
      "make_tables",
      [](const TraceSet set, const std::string& name, const py::dict& options) {
        return made(*of_traces, set.traces(), name, options);
      },
      py::arg("traces"), py::arg("name"), py::arg("options"),
      "-> tuple[Columns, ...]\nThe tables of a declared analysis, in their order.");
  module.def(
      "make_memory_tables",
      [](const memory::Snapshot& snapshot, const std::string& name, const py::dict& options) {
        return made<device::Snapshot>(*of_memory, snapshot, name, options);
      },
      py::arg("snapshot"), py::arg("name"), py::arg("options"),
      "-> tuple[Columns, ...]\nAs `make_tables`, for a memory snapshot.");
  module.def(
      "declared_tables", [] { return py::make_tuple(listed(*of_traces), listed(*of_memory)); },
      "-> tuple[list[tuple[str, str, list[tuple[str, str, Any, bool]], list[tuple[str, str, list[tuple[str, "
      "str, "
      "str, str, bool]]]], bool]], ...]\n"
      "The analyses of traces and of memory snapshots: name, docstring, options, tables, and whether "
      "`make_tables` "
      "makes them. An option: name, type, usual value, whether it may be given by place. A table: its part "
      "of the "
      "answer, its name (empty: none), its columns. A column: name, type, unit, how to read it, whether it "
      "is there "
      "on request only.");
  module.def(
      "step_points",
      [](const TraceSet set, std::string fp_point, std::string bp_point) {
        const LockReleased released;
        device::StepPoints found =
            device::step_points(set.traces(), {std::move(fp_point), std::move(bp_point)});
        return std::tuple(shared(std::move(found.steps)), shared(std::move(found.average)));
      },
      py::arg("traces"), py::arg("fp_point"), py::arg("bp_point"));
  module.def(
      "device_idle",
      [](const TraceSet set, const Waits& waits) {
        const LockReleased released;
        device::DeviceIdle found = idle_of(set.traces()[0], waits);
        return std::tuple(shared(std::move(found.steps)), shared(std::move(found.total)));
      },
      py::arg("traces"), py::arg("waits"));
  module.def(
      "diff",
      [](const TraceSet control, const TraceSet test, Steps control_steps, Steps test_steps,
         const std::string& side, bool short_names) {
        const LockReleased without_lock;
        return shared(device::diff(control.traces()[0], test.traces()[0],
                                   {scope_of(std::move(control_steps)), scope_of(std::move(test_steps)),
                                    side_of(side), short_names}));
      },
      py::arg("control"), py::arg("test"), py::arg("control_steps"), py::arg("test_steps"), py::arg("side"),
      py::arg("short_names"));
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
