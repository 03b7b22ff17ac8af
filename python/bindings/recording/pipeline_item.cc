#include "recording/pipeline_item.h"

namespace headrace::python {

BodyFailure::BodyFailure() {
  PyObject* value = calling_python([] {
    PyObject* type = nullptr;
    PyObject* instance = nullptr;
    PyObject* trace = nullptr;
    PyErr_Fetch(&type, &instance, &trace);
    PyErr_NormalizeException(&type, &instance, &trace);
    if (trace != nullptr) PyException_SetTraceback(instance, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return instance;
  });
  value_ = std::make_shared<Item>(value);
}

}  // namespace headrace::python
