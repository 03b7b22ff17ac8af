// Text of a recording, for Python.
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>

namespace headrace::python {

/// Names in a recording are any bytes.
inline pybind11::str decoded(std::string_view text) {
  return pybind11::reinterpret_steal<pybind11::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

}  // namespace headrace::python
