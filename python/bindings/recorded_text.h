// Text of a recording, for Python.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>
#include <vector>

namespace headrace::python {

/// Names in a recording are any bytes.
inline pybind11::str decoded(std::string_view text) {
  return pybind11::reinterpret_steal<pybind11::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

inline pybind11::str str_of_path(const std::string& path) {
  return pybind11::reinterpret_steal<pybind11::str>(
      PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

/// Text for people, which may name such a path.
inline pybind11::str str_of_text(const std::string& text) {
  return pybind11::reinterpret_steal<pybind11::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

inline pybind11::list list_of_texts(const std::vector<std::string>& texts) {
  pybind11::list list;
  for (const std::string& text : texts) list.append(str_of_text(text));
  return list;
}

}  // namespace headrace::python
