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
#include "headrace/report/memory.h"

namespace py = pybind11;

namespace headrace::python {

using memory::Snapshot;

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
      .def_property_readonly("segments", [](const Snapshot& snapshot) { return snapshot.segments.size(); });
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
