// Memory snapshots of PyTorch's allocator. Crossing only.
#include "headrace/memory/snapshot.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "column_set.h"
#include "crossing.h"
#include "headrace/analysis/device_memory/actions.h"
#include "headrace/analysis/device_memory/fragmentation.h"
#include "headrace/analysis/device_memory/growth.h"
#include "headrace/analysis/device_memory/holders.h"
#include "headrace/analysis/device_memory/out_of_memory.h"
#include "headrace/analysis/device_memory/over_time.h"
#include "headrace/analysis/device_memory/peak.h"
#include "headrace/report/memory.h"

namespace py = pybind11;

namespace headrace::python {
namespace {

namespace device_memory = analysis::device_memory;
using memory::Snapshot;

template <class Analysis, class... Arguments>
auto table_of(const Snapshot& snapshot, Analysis analysis, const Arguments&... arguments) {
  const LockReleased without_lock;
  return shared(analysis(snapshot, arguments...));
}

}  // namespace

void add_memory_snapshot(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  module.def("holds_pickle", &memory::holds_pickle, py::arg("path"), py::call_guard<LockReleased>());
  py::class_<Snapshot, std::shared_ptr<Snapshot>>(
      module, "MemorySnapshot", "The columns of a memory snapshot. Read-only, so any thread may use it.")
      .def(py::init([](const std::string& path) {
             return std::make_shared<Snapshot>(memory::read_snapshot(path));
           }),
           py::arg("path"), py::call_guard<LockReleased>())
      .def_readonly("path", &Snapshot::path)
      .def_property_readonly("events", [](const Snapshot& snapshot) { return snapshot.events.count(); })
      .def_property_readonly("segments", [](const Snapshot& snapshot) { return snapshot.segments.size(); })
      .def("peak", [](const Snapshot& snapshot) { return table_of(snapshot, &device_memory::peak); })
      .def("holders", [](const Snapshot& snapshot) { return table_of(snapshot, &device_memory::holders); })
      .def("fragmentation",
           [](const Snapshot& snapshot) { return table_of(snapshot, &device_memory::fragmentation); })
      .def(
          "oom",
          [](const Snapshot& snapshot, std::int64_t device_bytes) {
            return table_of(snapshot, &device_memory::out_of_memory,
                            device_memory::OutOfMemoryOptions{device_bytes});
          },
          py::arg("device_bytes"))
      .def("growth", [](const Snapshot& snapshot) { return table_of(snapshot, &device_memory::growth); })
      .def("actions", [](const Snapshot& snapshot) { return table_of(snapshot, &device_memory::actions); })
      .def(
          "over_time",
          [](const Snapshot& snapshot, std::size_t moments, std::size_t places) {
            return table_of(snapshot, &device_memory::over_time,
                            device_memory::OverTimeOptions{moments, places});
          },
          py::arg("moments"), py::arg("places"));
  using report::MemoryLevels;
  using Held = std::vector<std::vector<double>>;
  py::class_<MemoryLevels>(
      module, "MemoryLevels",
      "Memory of a device at moments that follow each other, as declared in report/memory.h.")
      .def(py::init<std::string, std::vector<std::string>, Held, std::string, std::string, std::string>(),
           py::arg("title"), py::arg("places"), py::arg("held_bytes"), py::arg("highest"), py::arg("begins"),
           py::arg("ends"));
  module.def(
      "memory_page",
      [](std::string title, bool is_bad, std::vector<std::string> findings, std::vector<MemoryLevels> devices,
         std::vector<report::ClusterTable> tables, std::vector<std::string> remarks) {
        return report::to_html(report::MemoryPage{std::move(title), is_bad, std::move(findings),
                                                  std::move(devices), std::move(tables), std::move(remarks)});
      },
      py::arg("title"), py::arg("is_bad"), py::arg("findings"), py::arg("devices"), py::arg("tables"),
      py::arg("remarks"), py::call_guard<LockReleased>());
}

}  // namespace headrace::python
