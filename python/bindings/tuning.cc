// The page of a search for parameters.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "crossing.h"
#include "headrace/report/tuning.h"

namespace py = pybind11;

namespace headrace::python {

void add_tuning(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  py::class_<report::TuningPoint>(module, "TuningPoint")
      .def(py::init<std::string, double, double, double, double, double>(), py::arg("label"),
           py::arg("predicted_s"), py::arg("low_s"), py::arg("high_s"), py::arg("measured_s"),
           py::arg("error_s"));
  py::class_<report::TuningPage>(module, "TuningPage")
      .def(py::init<std::string, std::string, std::vector<report::TuningPoint>, std::vector<std::string>,
                    std::vector<std::vector<std::string>>, std::vector<std::string>>(),
           py::arg("headline"), py::arg("about"), py::arg("points"), py::arg("columns"), py::arg("rows"),
           py::arg("remarks"))
      .def(
          "html", [](const report::TuningPage& page, bool whole) { return report::to_html(page, whole); },
          py::arg("whole_page"));
}

}  // namespace headrace::python
