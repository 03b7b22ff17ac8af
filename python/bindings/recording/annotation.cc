// Named ranges of the program. Crossing only.
#include <pybind11/pybind11.h>

#include "crossing.h"
#include "headrace/profile/annotation.h"

namespace py = pybind11;

namespace headrace::python {

void add_annotation(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  module.def(
      "annotate_begin", [](const std::string& name) { profile::annotate_begin(name); }, py::arg("name"),
      "Never raises; does nothing if nothing is recorded.");
  module.def("annotate_end", [] { profile::annotate_end(); });
}

}  // namespace headrace::python
