// Ascend profiles: their folders. Crossing only.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "crossing.h"
#include "headrace/trace/ascend/profile_folder.h"

namespace py = pybind11;

namespace headrace::python {

namespace ascend = trace::ascend;

void add_ascend(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  py::class_<ascend::ProfileFolder>(module, "ProfileFolder")
      .def_readonly("path", &ascend::ProfileFolder::path)
      .def_readonly("output", &ascend::ProfileFolder::output)
      .def_readonly("rank", &ascend::ProfileFolder::rank)
      .def_readonly("trace_view", &ascend::ProfileFolder::trace_view)
      .def_readonly("database", &ascend::ProfileFolder::database)
      .def_property_readonly("events_file", &ascend::ProfileFolder::events_file);
  module.def("find_profiles", &ascend::find_profiles, py::arg("path"), py::call_guard<LockReleased>());
  module.def("profile_of", &ascend::profile_of, py::arg("file"), py::call_guard<LockReleased>());
}

}  // namespace headrace::python
