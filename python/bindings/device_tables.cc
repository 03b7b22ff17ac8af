// The analyses of device traces. Crossing only: each takes a TraceSet and keyword options, and gives Columns.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "column_set.h"
#include "crossing.h"
#include "device_trace.h"
#include "headrace/analysis/device/annotations.h"
#include "headrace/analysis/device/collectives.h"
#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/device/diff.h"
#include "headrace/analysis/device/idle_breakdown.h"
#include "headrace/analysis/device/kernel_breakdown.h"
#include "headrace/analysis/device/kernels.h"
#include "headrace/analysis/device/launches.h"
#include "headrace/analysis/device/loader_waits.h"
#include "headrace/analysis/device/memory_bandwidth.h"
#include "headrace/analysis/device/operators.h"
#include "headrace/analysis/device/overlap.h"
#include "headrace/analysis/device/queue_length.h"
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
using Steps = std::vector<std::int64_t>;
using SharedColumns = std::shared_ptr<ColumnSet>;

constexpr double kNsPerSecond = 1e9;

device::Scope scope_of(Steps steps) {
  device::Scope scope;
  scope.steps = std::move(steps);
  return scope;
}

template <class Options>
Options of_devices(Steps steps, bool per_device) {
  Options options;
  options.scope = scope_of(std::move(steps));
  options.per_device = per_device;
  return options;
}

device::Side side_of(const std::string& name) {
  if (name == "both") return device::Side::both;
  if (name == "host") return device::Side::host;
  if (name == "device") return device::Side::device;
  throw UsageError("side is 'both', 'host' or 'device', not '" + name + "'");
}

/// Runs with the interpreter lock let go. What `body` uses is on the stack (traces by value: they are
/// shared).
template <class Body>
auto released(Body&& body) {
  const LockReleased without_lock;
  return body();
}

}  // namespace

void add_device_tables(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  const auto per_device = [&](const char* name, auto* table) {
    module.def(
        name,
        [table](const TraceSet set, Steps steps, bool devices) {
          return released([&] {
            return shared(table(set.traces(), of_devices<device::DeviceOptions>(std::move(steps), devices)));
          });
        },
        py::arg("traces"), py::arg("steps"), py::arg("per_device"));
  };
  per_device("time_breakdown", &device::time_breakdown);
  per_device("overlap", &device::overlap);
  per_device("kernel_breakdown", &device::kernel_breakdown);

  module.def(
      "kernels",
      [](const TraceSet set, Steps steps, bool memory, std::size_t most_names, double time_share) {
        return released([&] {
          return shared(
              device::kernels(set.traces(), {scope_of(std::move(steps)), memory, most_names, time_share}));
        });
      },
      py::arg("traces"), py::arg("steps"), py::arg("memory"), py::arg("most_names"), py::arg("time_share"));
  module.def(
      "idle_breakdown",
      [](const TraceSet set, Steps steps, double consecutive_kernel_delay_s) {
        return released([&] {
          device::IdleBreakdownOptions options;
          options.scope = scope_of(std::move(steps));
          options.consecutive_kernel_delay_ns =
              static_cast<std::int64_t>(consecutive_kernel_delay_s * kNsPerSecond);
          options.interval_statistics = true;
          device::IdleBreakdown answer = device::idle_breakdown(set.traces(), options);
          return std::pair(shared(std::move(answer.idle)), shared(std::move(answer.intervals)));
        });
      },
      py::arg("traces"), py::arg("steps"), py::arg("consecutive_kernel_delay_s"));
  module.def(
      "queue_length",
      [](const TraceSet set, Steps steps, std::int64_t capacity) {
        return released([&] {
          device::QueueLength answer =
              device::queue_length(set.traces(), {scope_of(std::move(steps)), capacity});
          return std::pair(shared(std::move(answer.summary)), shared(std::move(answer.series)));
        });
      },
      py::arg("traces"), py::arg("steps"), py::arg("capacity"));
  module.def(
      "memory_bandwidth",
      [](const TraceSet set, Steps steps) {
        return released([&] {
          device::MemoryBandwidth answer = device::memory_bandwidth(set.traces(), scope_of(std::move(steps)));
          return std::pair(shared(std::move(answer.summary)), shared(std::move(answer.series)));
        });
      },
      py::arg("traces"), py::arg("steps"));
  module.def(
      "launches",
      [](const TraceSet set, Steps steps, bool memory) {
        return released(
            [&] { return shared(device::launches(set.traces(), {scope_of(std::move(steps)), memory})); });
      },
      py::arg("traces"), py::arg("steps"), py::arg("memory"));
  module.def(
      "annotations",
      [](const TraceSet set, Steps steps, bool on_device, std::size_t most_names, double time_share,
         std::vector<std::string> always_shown) {
        return released([&] {
          device::Annotations answer = device::annotations(
              set.traces(),
              {scope_of(std::move(steps)), on_device, most_names, time_share, std::move(always_shown)});
          return std::pair(shared(std::move(answer.ranges)), shared(std::move(answer.kernels)));
        });
      },
      py::arg("traces"), py::arg("steps"), py::arg("on_device"), py::arg("most_names"), py::arg("time_share"),
      py::arg("always_shown"));
  module.def(
      "sequences",
      [](const TraceSet set, Steps steps, std::string operator_name, std::size_t shortest, std::size_t most) {
        return released([&] {
          return shared(device::sequences(
              set.traces(), {scope_of(std::move(steps)), std::move(operator_name), shortest, most}));
        });
      },
      py::arg("traces"), py::arg("steps"), py::arg("operator_name"), py::arg("shortest"), py::arg("most"));
  module.def(
      "operator_sequences",
      [](const TraceSet set, Steps steps, std::string prefix) {
        return released([&] {
          return shared(
              device::operator_sequences(set.traces(), {scope_of(std::move(steps)), std::move(prefix)}));
        });
      },
      py::arg("traces"), py::arg("steps"), py::arg("prefix"));
  module.def(
      "operators",
      [](const TraceSet set, Steps steps, bool by_input_shapes, std::size_t stack_frames) {
        return released([&] {
          return shared(
              device::operators(set.traces(), {scope_of(std::move(steps)), by_input_shapes, stack_frames}));
        });
      },
      py::arg("traces"), py::arg("steps"), py::arg("by_input_shapes"), py::arg("stack_frames"));
  module.def(
      "collectives",
      [](const TraceSet set, Steps steps) {
        return released(
            [&] { return shared(device::collectives(set.traces(), scope_of(std::move(steps)))); });
      },
      py::arg("traces"), py::arg("steps"));
  module.def(
      "stragglers",
      [](const TraceSet set, Steps steps, std::size_t candidates) {
        return released(
            [&] { return shared(device::stragglers(set.traces(), {std::move(steps), candidates})); });
      },
      py::arg("traces"), py::arg("steps"), py::arg("candidates"));
  module.def(
      "diff",
      [](const TraceSet& control, const TraceSet& test, Steps control_steps, Steps test_steps,
         const std::string& side, bool short_names) {
        const device::DiffOptions options{scope_of(std::move(control_steps)), scope_of(std::move(test_steps)),
                                          side_of(side), short_names};
        return released([&] { return shared(device::diff(control.traces()[0], test.traces()[0], options)); });
      },
      py::arg("control"), py::arg("test"), py::arg("control_steps"), py::arg("test_steps"), py::arg("side"),
      py::arg("short_names"));
  module.def(
      "step_breakdown",
      [](const TraceSet set) {
        return released([&] {
          device::StepBreakdown answer = device::step_breakdown(set.traces());
          return std::make_tuple(shared(std::move(answer.steps)), shared(std::move(answer.average)),
                                 shared(std::move(answer.findings)));
        });
      },
      py::arg("traces"));
  module.def(
      "step_points",
      [](const TraceSet set, std::string fp_point, std::string bp_point) {
        return released([&] {
          device::StepPoints answer =
              device::step_points(set.traces(), {std::move(fp_point), std::move(bp_point)});
          return std::pair(shared(std::move(answer.steps)), shared(std::move(answer.average)));
        });
      },
      py::arg("traces"), py::arg("fp_point"), py::arg("bp_point"));
  module.def(
      "device_idle",
      [](const TraceSet set, std::optional<std::vector<std::pair<std::int64_t, std::int64_t>>> waits) {
        return released([&] {
          const trace::Trace& trace = set.traces()[0];
          std::vector<device::Interval> intervals;
          if (waits) {
            for (const auto& [begin, end] : *waits) intervals.push_back({begin, end});
          } else {
            intervals = device::loader_waits(trace);
          }
          device::DeviceIdle answer = device::device_idle(trace, intervals);
          return std::pair(shared(std::move(answer.steps)), shared(std::move(answer.total)));
        });
      },
      py::arg("traces"), py::arg("waits"));
  module.def(
      "step_time",
      [](const TraceSet set) { return released([&] { return shared(device::step_time(set.traces())); }); },
      py::arg("traces"));
  module.def(
      "trace_steps",
      [](const TraceSet set) { return released([&] { return shared(device::steps(set.traces())); }); },
      py::arg("traces"));
}

}  // namespace headrace::python
