// Marks within a training step. Crossing only.
#include <pybind11/pybind11.h>

#include "crossing.h"
#include "headrace/profile/step.h"

namespace py = pybind11;

namespace headrace::python {

void add_steps(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  module.def(
      "forward_began", &profile::forward_began,
      "From any thread; the first in a step counts. Does nothing if no wrapped loop runs. Never raises.");
  module.def("backward_ended", &profile::backward_ended,
             "As `forward_began`, but the last in a step counts.");
  module.def("update_began", &profile::update_began, "As `backward_ended`, if there is no other mark.");
  module.def("step_begin", &profile::step_begin, "`forward_began` and the beginning of a range \"step\".");
  module.def("step_end", &profile::step_end, "`backward_ended` and the end of that range.");
}

}  // namespace headrace::python
