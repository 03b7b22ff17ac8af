// Marks within a training step. Crossing only.
#include <pybind11/pybind11.h>

#include "crossing.h"
#include "headrace/profile/step.h"

namespace py = pybind11;

namespace headrace::python {

void add_steps(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  module.def("forward_began", &profile::forward_began);
  module.def("backward_ended", &profile::backward_ended);
  module.def("update_began", &profile::update_began);
  module.def("step_begin", &profile::step_begin);
  module.def("step_end", &profile::step_end);
}

}  // namespace headrace::python
