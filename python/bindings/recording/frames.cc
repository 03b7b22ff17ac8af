// Stacks of threads, without a hold on what their functions hold; local variables of frames; exceptions that handlers
// of signals raised.
//
// A frame that a sampling thread keeps while its function returns takes the function's objects along: their
// finalizers would then run on the sampling thread. Here all of a stack is read in one go, under the
// interpreter lock, and no frame is left.
//
// Variables are read without `frame.f_locals`: before Python 3.13 that makes a dict that the user's function then
// shares with `locals()`, and that keeps what the function deletes. `_core.local_variables(frame)` is a dict of its own.
#include <pybind11/pybind11.h>

#include <csignal>
#include <cstddef>
#include <string_view>
#include <utility>

#include "crossing.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
// Python 3.11 moved the variables into a structure of its own, and 3.12 added PyFrame_GetVar.
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

namespace py = pybind11;

namespace headrace::python {
namespace {

// --- stacks ---

constexpr std::size_t kDeepestCall = 1000;

/// "torch" of "torch.utils.data"; "" if the globals do not say.
py::str package_of(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  const Owned globals(PyFrame_GetGlobals(frame));
#else
  const Owned globals(PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_globals"));
#endif
  PyObject* name =
      globals && PyDict_Check(globals.get()) ? PyDict_GetItemString(globals.get(), "__name__") : nullptr;
  if (name == nullptr || PyUnicode_Check(name) == 0) return {};
  const Py_ssize_t dot = PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1);
  if (dot < 0) return py::reinterpret_borrow<py::str>(name);
  return py::reinterpret_steal<py::str>(PyUnicode_Substring(name, 0, dot));
}

/// Code, line and package of each call, the innermost first, down to `deepest`.
py::list calls_from(PyFrameObject* innermost, std::size_t deepest) {
  py::list calls;
  Owned frame = Owned::ref(reinterpret_cast<PyObject*>(innermost));
  for (std::size_t depth = 0; frame && depth < deepest; ++depth) {
    auto* here = reinterpret_cast<PyFrameObject*>(frame.get());
    const auto code = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(here)));
    calls.append(py::make_tuple(code, PyFrame_GetLineNumber(here), package_of(here)));
    frame = Owned(reinterpret_cast<PyObject*>(PyFrame_GetBack(here)));
  }
  PyErr_Clear();
  return calls;
}

/// A collection may run finalizers, which may let other threads run: the frames that are walked would be gone, and the
/// lock that `sys._current_frames` holds would be waited for by a thread that has the interpreter's.
class CollectionsOff {
 public:
  CollectionsOff() noexcept : were_on_(PyGC_Disable() != 0) {}
  ~CollectionsOff() {
    if (were_on_) PyGC_Enable();
  }
  CollectionsOff(const CollectionsOff&) = delete;
  CollectionsOff& operator=(const CollectionsOff&) = delete;

 private:
  bool were_on_;
};

py::dict current_frames() {
  const CollectionsOff off;
  return py::module_::import("sys").attr("_current_frames")();
}

/// All in one call of C: no other thread runs Python code meanwhile, so no frame that is let go was the last hold
/// on anything.
template <class Visit>
void visit_threads(Visit&& visit) {
  const CollectionsOff off;
  const py::dict frames = current_frames();
  for (const auto& [ident, frame] : frames)
    visit(py::cast<unsigned long>(ident), reinterpret_cast<PyFrameObject*>(frame.ptr()));
}

// --- variables and exceptions ---

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

/// The exception, or one that it was explicitly raised from, if it passed through a function that is the handler of a
/// signal now, or that was called with the frame below it as an argument, which is how Python calls handlers. So a
/// signal's handler raised it, whichever code it interrupted. Null for others. A handler written in C leaves no trace.
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

}  // namespace

void forget_failure() {
  if (PyErr_Occurred() == nullptr || PyErr_ExceptionMatches(PyExc_Exception) == 0) return;
  KeptError error;
  if (const Owned raised = raised_by_signal_handler(error.exception()))
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.get())), raised.get());
}

void add_frames(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  module.def("current_frames", &current_frames,
             "-> dict[int, types.FrameType]\n`sys._current_frames`, without a garbage collection meanwhile, "
             "which may end in a deadlock.");
  module.def(
      "calls_of_thread",
      [](unsigned long thread, std::size_t deepest) {
        py::list calls;
        visit_threads([&](unsigned long ident, PyFrameObject* frame) {
          if (ident == thread) calls = calls_from(frame, deepest);
        });
        return calls;
      },
      py::arg("thread"), py::arg("deepest") = kDeepestCall,
      "-> list[tuple[types.CodeType, int, str]]\nCode, line and package of each call of a thread, the "
      "innermost first; empty if it is gone. Nothing that its functions hold is kept alive.");
  module.def(
      "calls_of_threads",
      [](std::size_t deepest) {
        py::dict all;
        visit_threads([&](unsigned long ident, PyFrameObject* frame) {
          all[py::int_(ident)] = calls_from(frame, deepest);
        });
        return all;
      },
      py::arg("deepest"),
      "-> dict[int, list[tuple[types.CodeType, int, str]]]\nAs `calls_of_thread`, for all threads.");
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
