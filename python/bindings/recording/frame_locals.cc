#include "recording/frame_locals.h"

#include <pybind11/pybind11.h>

#include <csignal>
#include <string_view>
#include <utility>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
// Python 3.11 moved the variables into a structure of its own, and 3.12 added PyFrame_GetVar.
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

namespace py = pybind11;

namespace headrace::python {
namespace {

/// `visit(index, name, value)` for each variable that is set, arguments first; false ends it. The value of a
/// captured variable is what its cell contains.
template <class Visit>
void for_each_variable(PyFrameObject* frame, Visit&& visit) {
  const Owned code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
  const Owned names = Owned::ref(reinterpret_cast<PyCodeObject*>(code.get())->co_localsplusnames);
#else
  Owned names(PyList_New(0));
  for (const char* kind : {"co_varnames", "co_cellvars", "co_freevars"}) {
    const Owned more(PyObject_GetAttrString(code.get(), kind));
    names = Owned(more ? PySequence_InPlaceConcat(names.get(), more.get()) : nullptr);
  }
#endif
  const Py_ssize_t count = PySequence_Size(names.get());
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Owned name(PySequence_GetItem(names.get(), i));
#if PY_VERSION_HEX >= 0x030C0000
    Owned value(PyFrame_GetVar(frame, name.get()));
#elif PY_VERSION_HEX >= 0x030B0000
    Owned value = Owned::ref(frame->f_frame->localsplus[i]);
#else
    Owned value = Owned::ref(frame->f_localsplus[i]);
#endif
    if (value && PyCell_Check(value.get()) != 0) value = Owned::ref(PyCell_GET(value.get()));
    if (value && !visit(i, name.get(), value.get())) break;
    PyErr_Clear();  // a variable that is unset
  }
  PyErr_Clear();
}

bool is_or_contains(PyObject* value, PyObject* wanted) {
  if (value == wanted) return true;
  if (value == nullptr || PyTuple_CheckExact(value) == 0) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
    if (PyTuple_GET_ITEM(value, i) == wanted) return true;
  return false;
}

bool got_its_caller(PyFrameObject* frame) {
  const Owned caller(reinterpret_cast<PyObject*>(PyFrame_GetBack(frame)));
  if (!caller) return false;
  const Owned held(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const auto& code = *reinterpret_cast<PyCodeObject*>(held.get());
  const Py_ssize_t arguments =
      code.co_argcount + code.co_kwonlyargcount + ((code.co_flags & CO_VARARGS) != 0 ? 1 : 0);
  bool found = false;
  for_each_variable(frame, [&](Py_ssize_t index, PyObject*, PyObject* value) {
    found = index < arguments && is_or_contains(value, caller.get());
    return !found && index < arguments;
  });
  return found;
}

/// The code of a function, of a method's or a partial's, or of a callable object's class; null for others.
PyObject* code_of(PyObject* callable) {
  Owned function = Owned::ref(callable);
  for (int depth = 0; function && depth < 8; ++depth) {
    if (PyFunction_Check(function.get())) return PyFunction_GET_CODE(function.get());
    if (PyMethod_Check(function.get())) {
      function = Owned::ref(PyMethod_GET_FUNCTION(function.get()));
      continue;
    }
    Owned inner(PyObject_GetAttrString(function.get(), "func"));  // of functools.partial
    if (!inner)
      inner = Owned(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(function.get())), "__call__"));
    PyErr_Clear();
    function = std::move(inner);
  }
  return nullptr;
}

/// A handler may have deleted its argument.
bool is_of_a_handler(PyFrameObject* frame) {
  const Owned code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const Owned module(PyImport_ImportModule("_signal"));
  for (int number = 1; module && number < NSIG; ++number) {
    const Owned handler(PyObject_CallMethod(module.get(), "getsignal", "i", number));
    if (!handler) PyErr_Clear();
    if (handler && PyCallable_Check(handler.get()) != 0 && code_of(handler.get()) == code.get()) return true;
  }
  return false;
}

/// Functions of ours get frames, too.
bool is_ours(PyFrameObject* frame) {
  const Owned globals(PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_globals"));
  PyObject* name = globals ? PyDict_GetItemString(globals.get(), "__name__") : nullptr;
  const char* text = name != nullptr && PyUnicode_Check(name) != 0 ? PyUnicode_AsUTF8(name) : nullptr;
  return text != nullptr && std::string_view(text).starts_with("headrace.");
}

py::dict local_variables(py::handle frame) {
  if (PyFrame_Check(frame.ptr()) == 0) throw py::type_error("needs a frame");
  py::dict variables;
  for_each_variable(reinterpret_cast<PyFrameObject*>(frame.ptr()),
                    [&](Py_ssize_t, PyObject* name, PyObject* value) {
                      return PyDict_SetItem(variables.ptr(), name, value) == 0;
                    });
  return variables;
}

}  // namespace

Owned raised_by_signal_handler(PyObject* exception) {
  Owned each = Owned::ref(exception);
  for (int depth = 0; each && PyExceptionInstance_Check(each.get()) && depth < 8; ++depth) {
    const Owned traceback(PyException_GetTraceback(each.get()));
    for (auto* at = reinterpret_cast<PyTracebackObject*>(traceback.get()); at != nullptr; at = at->tb_next)
      if ((got_its_caller(at->tb_frame) && !is_ours(at->tb_frame)) || is_of_a_handler(at->tb_frame))
        return each;
    each = Owned(PyException_GetCause(each.get()));
  }
  return Owned();
}

void forget_failure() {
  if (PyErr_Occurred() == nullptr || PyErr_ExceptionMatches(PyExc_Exception) == 0) return;
  KeptError error;
  if (const Owned raised = raised_by_signal_handler(error.exception()))
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.get())), raised.get());
}

void add_frame_locals(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  module.def(
      "local_variables", &local_variables, py::arg("frame"),
      "local_variables(frame: types.FrameType) -> dict[str, Any]\nThe variables of a function that are set "
      "now, in a new dict: `frame.f_locals` would share its dict with the function's `locals()`.");
  module.def(
      "raised_by_signal_handler",
      [](py::handle error) {
        Owned raised = raised_by_signal_handler(error.ptr());
        return raised ? py::reinterpret_steal<py::object>(raised.release()) : py::object(py::none());
      },
      py::arg("error"),
      "raised_by_signal_handler(error: BaseException) -> BaseException | None\nThe exception that a signal's "
      "handler raised: this one, or one that it was raised from.");
}

}  // namespace headrace::python
