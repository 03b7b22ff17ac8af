// Memory snapshots of PyTorch's allocator. Crossing only.
#include "headrace/memory/snapshot.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "column_set.h"
#include "crossing.h"
#include "headrace/analysis/device_memory/actions.h"
#include "headrace/analysis/device_memory/fragmentation.h"
#include "headrace/analysis/device_memory/growth.h"
#include "headrace/analysis/device_memory/holders.h"
#include "headrace/analysis/device_memory/out_of_memory.h"
#include "headrace/analysis/device_memory/peak.h"

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
  py::class_<Snapshot, std::shared_ptr<Snapshot>>(module, "MemorySnapshot")
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
      .def("actions", [](const Snapshot& snapshot) { return table_of(snapshot, &device_memory::actions); });
}

}  // namespace headrace::python
