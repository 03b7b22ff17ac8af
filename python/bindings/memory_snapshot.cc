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
}

}  // namespace headrace::python
