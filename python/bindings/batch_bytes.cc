#include "batch_bytes.h"

#include <cstring>

#include "crossing.h"

namespace headrace::python {
namespace {

constexpr int kDeepest = 5;
constexpr int kMostObjects = 512;

/// NumPy arrays and torch tensors themselves; a subclass may run its author's code when it is asked.
bool tells_nbytes(PyTypeObject* type) {
  if (std::strcmp(type->tp_name, "numpy.ndarray") == 0) return true;
  if (std::strcmp(type->tp_name, "Tensor") != 0) return false;
  const Owned module(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__"));
  const char* name = module && PyUnicode_Check(module.get()) ? PyUnicode_AsUTF8(module.get()) : nullptr;
  return name != nullptr && std::strcmp(name, "torch") == 0;
}

class Sum {
 public:
  void add(PyObject* object, int depth) {
    if (depth > kDeepest || ++objects_ > kMostObjects) return;
    if (PyBytes_CheckExact(object)) {
      bytes_ += static_cast<std::uint64_t>(PyBytes_GET_SIZE(object));
    } else if (PyTuple_Check(object)) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) add(PyTuple_GET_ITEM(object, i), depth + 1);
    } else if (PyList_CheckExact(object)) {
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i) add(PyList_GET_ITEM(object, i), depth + 1);
    } else if (PyDict_CheckExact(object)) {
      PyObject* key = nullptr;
      PyObject* value = nullptr;
      for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value) != 0;) add(value, depth + 1);
    } else if (tells_nbytes(Py_TYPE(object))) {
      const Owned size(PyObject_GetAttrString(object, "nbytes"));
      const long long bytes = size ? PyLong_AsLongLong(size.get()) : 0;
      if (bytes > 0) bytes_ += static_cast<std::uint64_t>(bytes);
    }
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
  }

  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::uint64_t bytes_ = 0;
  int objects_ = 0;
};

}  // namespace

std::uint64_t batch_bytes(PyObject* batch) {
  Sum sum;
  sum.add(batch, 0);
  return sum.bytes();
}

}  // namespace headrace::python
