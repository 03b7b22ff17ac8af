#include "recording/native_body.h"

#include <pybind11/pybind11.h>

#include <optional>

#include "crossing.h"
#include "headrace/profile/errors.h"

namespace py = pybind11;

namespace headrace::python {
namespace {

/// PyCapsule named "headrace.body": its pointer is the function, its context the context.
constexpr const char* kCapsuleName = "headrace.body";

NativeBody body_from_capsule(const py::object& capsule, std::int64_t output_bytes) {
  void* pointer = PyCapsule_GetPointer(capsule.ptr(), kCapsuleName);
  if (pointer == nullptr) throw py::error_already_set();
  void* context = PyCapsule_GetContext(capsule.ptr());
  if (context == nullptr && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return {reinterpret_cast<std::uintptr_t>(pointer), reinterpret_cast<std::uintptr_t>(context), output_bytes,
          capsule.ptr()};
}

}  // namespace

NativeBody::NativeBody(std::uintptr_t function, std::uintptr_t context, std::int64_t output_bytes,
                       PyObject* owner)
    : function_(reinterpret_cast<BodyFunction>(function)),
      context_(reinterpret_cast<void*>(context)),
      output_bytes_(output_bytes),
      owner_(owner) {
  if (function == 0) throw UsageError("a native body needs a function, not a null pointer");
  if (output_bytes < 0) throw UsageError("output_bytes is 0 or more, not " + std::to_string(output_bytes));
  Py_INCREF(owner_);
}

NativeBody::NativeBody(const NativeBody& other) noexcept
    : function_(other.function_),
      context_(other.context_),
      output_bytes_(other.output_bytes_),
      owner_(other.owner_) {
  Py_INCREF(owner_);
}

// The operator that holds it may go in any thread.
NativeBody::~NativeBody() { const Item dropped(owner_); }

Item NativeBody::call(Item&& item) const {
  const BufferView input(item.get());
  if (!input) throw BodyFailure();
  Item output =
      made_by([&] { return PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(output_bytes_)); });
  void* to = PyByteArray_AS_STRING(output.get());
  std::int64_t written = 0;
  {
    const NativeBody self = *this;
    const LockReleased released;
    written = self.function_(input.data(), input.size(), to, self.output_bytes_, self.context_);
  }
  if (written < 0 || written > output_bytes_) {
    const std::string what =
        written < 0 ? "failed with code " + std::to_string(written)
                    : "wrote " + std::to_string(written) + " bytes into " + std::to_string(output_bytes_);
    PyErr_SetString(PyExc_RuntimeError, ("the native body " + what).c_str());
    throw BodyFailure();
  }
  if (PyByteArray_Resize(output.get(), static_cast<Py_ssize_t>(written)) != 0) throw BodyFailure();
  return output;
}

void add_native_body(PyObject* object) {
  py::module_ module = py::reinterpret_borrow<py::module_>(object);
  py::class_<NativeBody>(module, "NativeBody", "A C function as the body of a map.")
      .def(py::init([](std::uintptr_t function, std::uintptr_t context, std::int64_t output_bytes,
                       const py::object& owner) {
             return NativeBody(function, context, output_bytes, owner.ptr());
           }),
           py::arg("function"), py::arg("context"), py::arg("output_bytes"), py::arg("owner"))
      .def_static("from_capsule", &body_from_capsule, py::arg("capsule"), py::arg("output_bytes"))
      .def(
          "__call__",
          [](const NativeBody& self, const py::object& item) {
            Py_INCREF(item.ptr());
            try {
              return py::reinterpret_steal<py::object>(self.call(Item(item.ptr())).release());
            } catch (const BodyFailure& failure) {
              PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(failure.value())), failure.value());
              throw py::error_already_set();
            }
          },
          py::arg("item"), "-> bytearray");
}

}  // namespace headrace::python
