// The page of a search for parameters.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "crossing.h"
#include "headrace/report/tuning.h"

namespace py = pybind11;

namespace headrace::python {

namespace {

using CurveRow = std::tuple<int, double, double, double, std::string>;
using CurveTuple = std::tuple<std::string, int, std::vector<CurveRow>>;

/// What `ParsedReport.curve` returns, as C++ has it.
analysis::StepCurve curve_of(const CurveTuple& tuple) {
  const auto& [parameter, now, rows] = tuple;
  analysis::StepCurve curve{parameter, now, {}};
  for (const auto& [value, step_s, low_s, high_s, limit] : rows)
    curve.points.push_back({value, {step_s, low_s, high_s, limit, true, ""}});
  return curve;
}

report::TuningPage page_of(std::string headline, std::string about, std::vector<report::TuningPoint> points,
                           std::vector<std::string> columns, std::vector<std::vector<std::string>> rows,
                           std::vector<std::string> remarks, const CurveTuple& curve,
                           const std::vector<std::pair<int, double>>& measured) {
  report::TuningPage page{std::move(headline), std::move(about),   std::move(points), std::move(columns),
                          std::move(rows),     std::move(remarks), curve_of(curve)};
  for (const auto& [value, step_s] : measured) page.measured.push_back({value, step_s});
  return page;
}

}  // namespace

void add_tuning(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  py::class_<report::TuningPoint>(
      module, "TuningPoint",
      "A change with a prediction, as declared in report/tuning.h. Seconds a step; NaN: unknown.")
      .def(py::init<std::string, double, double, double, double, double>(), py::arg("label"),
           py::arg("predicted_s"), py::arg("low_s"), py::arg("high_s"), py::arg("measured_s"),
           py::arg("error_s"));
  py::class_<report::TuningPage>(
      module, "TuningPage",
      "The texts of the page of a search for parameters, as declared in report/tuning.h.")
      .def(py::init(&page_of), py::arg("headline"), py::arg("about"), py::arg("points"), py::arg("columns"),
           py::arg("rows"), py::arg("remarks"), py::arg("curve"), py::arg("measured"))
      .def(
          "html", [](const report::TuningPage& page, bool whole) { return report::to_html(page, whole); },
          py::arg("whole_page"));
}

}  // namespace headrace::python
