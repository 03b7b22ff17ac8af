#include "recording/batch_contents.h"

#include <cstring>

#include "crossing.h"

namespace headrace::python {
namespace {

constexpr int kDeepest = 6;
constexpr int kMaxObjects = 512;
/// Texts and numbers are passed over, but not for ever.
constexpr int kMaxPassed = 8192;

bool is_plain_value(PyObject* object) {
  return object == Py_None || PyUnicode_CheckExact(object) != 0 || PyLong_CheckExact(object) != 0 ||
         PyFloat_CheckExact(object) != 0 || PyBool_Check(object) != 0;
}

bool is_of_torch(PyTypeObject* type) {
  const Owned module(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__"));
  const char* name = module && PyUnicode_Check(module.get()) ? PyUnicode_AsUTF8(module.get()) : nullptr;
  return name != nullptr && std::strcmp(name, "torch") == 0;
}

/// An object whose attributes are data: of a class that Python code made. (Graphs of PyG can be called, too.)
bool has_attributes(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && type->tp_dictoffset != 0 && PyType_Check(object) == 0;
}

class Look {
 public:
  void at(PyObject* object, int depth) {
    if (++passed_ > kMaxPassed || is_plain_value(object)) return;
    if (depth > kDeepest || ++objects_ > kMaxObjects) return;
    PyTypeObject* type = Py_TYPE(object);
    if (PyBytes_CheckExact(object)) {
      found_.bytes += static_cast<std::uint64_t>(PyBytes_GET_SIZE(object));
    } else if (PyTuple_Check(object)) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) at(PyTuple_GET_ITEM(object, i), depth + 1);
    } else if (PyList_Check(object)) {
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i) at(PyList_GET_ITEM(object, i), depth + 1);
    } else if (PyDict_Check(object)) {
      at_values(object, depth);
    } else if (std::strcmp(short_name(type), "Tensor") == 0) {
      ++found_.tensors;
      // A subclass may run its author's code when it is asked.
      if (is_of_torch(type)) add_nbytes(object);
    } else if (std::strcmp(type->tp_name, "numpy.ndarray") == 0) {
      add_nbytes(object);
    } else if (has_attributes(object)) {
      const Owned attributes(PyObject_GenericGetDict(object, nullptr));
      if (attributes && PyDict_Check(attributes.get())) at_values(attributes.get(), depth);
    }
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
  }

  const BatchContents& found() const noexcept { return found_; }

 private:
  void at_values(PyObject* dict, int depth) {
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    for (Py_ssize_t i = 0; PyDict_Next(dict, &i, &key, &value) != 0;) at(value, depth + 1);
  }

  void add_nbytes(PyObject* object) {
    const Owned size(PyObject_GetAttrString(object, "nbytes"));
    const long long bytes = size ? PyLong_AsLongLong(size.get()) : 0;
    if (bytes > 0) found_.bytes += static_cast<std::uint64_t>(bytes);
  }

  BatchContents found_;
  int objects_ = 0;
  int passed_ = 0;
};

}  // namespace

BatchContents contents_of(PyObject* batch) {
  Look look;
  look.at(batch, 0);
  return look.found();
}

}  // namespace headrace::python
