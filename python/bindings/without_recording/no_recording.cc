#include <pybind11/pybind11.h>

#include "crossing.h"

namespace headrace::python {

void add_recording(PyObject* module) { pybind11::handle(module).attr("RECORDS") = false; }

}  // namespace headrace::python
