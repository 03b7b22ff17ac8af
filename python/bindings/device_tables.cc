// The analyses of device traces. Crossing only: each takes a TraceSet and keyword options, and gives Columns.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "column_set.h"
#include "crossing.h"
#include "device_trace.h"
#include "headrace/analysis/device/annotations.h"
#include "headrace/analysis/device/collectives.h"
#include "headrace/analysis/device/declared_tables.h"
#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/device/diff.h"
#include "headrace/analysis/device/idle_breakdown.h"
#include "headrace/analysis/device/kernels.h"
#include "headrace/analysis/device/launches.h"
#include "headrace/analysis/device/loader_waits.h"
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
#include "headrace/profile/errors.h"

namespace py = pybind11;

namespace headrace::python {
namespace {

namespace device = analysis::device;
using analysis::Table;
using Traces = std::span<const trace::Trace>;
using Steps = std::vector<std::int64_t>;

constexpr double kNsPerSecond = 1e9;

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

using Waits = std::optional<std::vector<std::pair<std::int64_t, std::int64_t>>>;

// What a method of Python's `Trace` wraps: a table, or the parts of its answer in their order.
auto crossed(Table&& table) { return shared(std::move(table)); }
template <class... Tables>
auto crossed_all(Tables&... tables) {
  return std::tuple(shared(std::move(tables))...);
}
auto crossed(device::IdleBreakdown&& found) { return crossed_all(found.idle, found.intervals); }
auto crossed(device::QueueLength&& found) { return crossed_all(found.summary, found.series); }
auto crossed(device::MemoryBandwidth&& found) { return crossed_all(found.summary, found.series); }
auto crossed(device::Annotations&& found) { return crossed_all(found.ranges, found.kernels); }
auto crossed(device::StepPoints&& found) { return crossed_all(found.steps, found.average); }
auto crossed(device::StepBreakdown&& found) { return crossed_all(found.steps, found.average); }
auto crossed(device::DeviceIdle&& found) { return crossed_all(found.steps, found.total); }

/// Defines a function of Python that runs `analysis` without the interpreter lock, with the traces (by value:
/// they are shared) and then what is called `names`.
template <class... Arguments, class Analysis, class... Names>
void define(py::module_& module, const char* name, Analysis analysis, Names... names) {
  static_assert(sizeof...(Arguments) == sizeof...(Names));
  module.def(
      name,
      [analysis](const TraceSet set, Arguments... arguments) {
        const LockReleased without_lock;
        return crossed(analysis(set.traces(), std::move(arguments)...));
      },
      py::arg("traces"), py::arg(names)...);
}

/// The same for an analysis with options that are a scope and, behind it, `Arguments`.
template <class... Arguments, class Answer, class Options, class... Names>
void define_scoped(py::module_& module, const char* name, Answer (*analysis)(Traces, const Options&),
                   Names... names) {
  define<Steps, Arguments...>(
      module, name,
      [analysis](Traces traces, Steps steps, Arguments... arguments) {
        return analysis(traces, Options{scope_of(std::move(steps)), std::move(arguments)...});
      },
      "steps", names...);
}

device::DeviceIdle idle_of(const trace::Trace& trace, const Waits& waits) {
  if (!waits) return device::device_idle(trace, device::loader_waits(trace));
  std::vector<device::Interval> intervals;
  for (const auto& [begin, end] : *waits) intervals.push_back({begin, end});
  return device::device_idle(trace, intervals);
}

}  // namespace

void add_device_tables(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  define_scoped<bool>(module, "time_breakdown", &device::time_breakdown, "per_device");
  define_scoped<bool>(module, "overlap", &device::overlap, "per_device");
  define_scoped<bool>(module, "kernel_breakdown", &device::kernel_breakdown, "per_device");
  define_scoped<bool, std::size_t, double>(module, "kernels", &device::kernels, "memory", "most_names",
                                           "time_share");
  define_scoped<std::int64_t>(module, "queue_length", &device::queue_length, "capacity");
  define_scoped(module, "memory_bandwidth", &device::memory_bandwidth);
  define<Steps>(
      module, "memory_use",
      [](Traces traces, Steps steps) { return device::memory_use(traces, scope_of(std::move(steps))); },
      "steps");
  define_scoped<bool>(module, "launches", &device::launches, "memory");
  define_scoped<bool, std::size_t, double, std::vector<std::string>>(
      module, "annotations", &device::annotations, "on_device", "most_names", "time_share", "always_shown");
  define_scoped<std::string, std::size_t, std::size_t>(module, "sequences", &device::sequences,
                                                       "operator_name", "shortest", "most");
  define_scoped<std::string>(module, "operator_sequences", &device::operator_sequences, "prefix");
  define_scoped<bool, std::size_t>(module, "operators", &device::operators, "by_input_shapes",
                                   "stack_frames");
  define_scoped<std::optional<double>, std::optional<double>>(module, "roofline", &device::roofline,
                                                              "peak_tflops", "peak_gbps");
  define_scoped(module, "collectives", &device::collectives);
  define(module, "step_time", &device::step_time);
  define(module, "trace_steps", &device::steps);
  define(module, "step_breakdown", [](Traces traces) { return device::step_breakdown(traces); });
  define<std::string, std::string>(
      module, "step_points",
      [](Traces traces, std::string fp_point, std::string bp_point) {
        return device::step_points(traces, {std::move(fp_point), std::move(bp_point)});
      },
      "fp_point", "bp_point");
  define<Waits>(
      module, "device_idle", [](Traces traces, const Waits& waits) { return idle_of(traces[0], waits); },
      "waits");
  define<Steps, std::size_t>(
      module, "stragglers",
      [](Traces traces, Steps steps, std::size_t candidates) {
        return device::stragglers(traces, {std::move(steps), candidates});
      },
      "steps", "candidates");
  define<Steps, double>(
      module, "idle_breakdown",
      [](Traces traces, Steps steps, double consecutive_kernel_delay_s) {
        const auto delay_ns = static_cast<std::int64_t>(consecutive_kernel_delay_s * kNsPerSecond);
        return device::idle_breakdown(traces, {scope_of(std::move(steps)), delay_ns, true});
      },
      "steps", "consecutive_kernel_delay_s");
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
  module.def("declared_tables", [] {
    py::list tables;
    for (const device::DeclaredTable& table : device::declared_tables()) {
      py::list columns;
      for (const analysis::ColumnShape& column : table.columns)
        columns.append(py::make_tuple(column.name, column.type, column.unit, column.says, column.optional));
      tables.append(py::make_tuple(table.name, columns));
    }
    return tables;
  });
}

}  // namespace headrace::python
