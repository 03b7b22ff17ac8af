// Stacks of threads, without a hold on what their functions hold.
//
// A frame that a sampling thread keeps while its function returns takes the function's objects along: their
// finalizers would then run on the sampling thread. Here all of a stack is read in one go, under the
// interpreter lock, and no frame is left.
#include <pybind11/pybind11.h>

#include <cstddef>

#include "crossing.h"

namespace py = pybind11;

namespace headrace::python {
namespace {

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

}  // namespace

void add_thread_calls(PyObject* into) {
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
}

}  // namespace headrace::python
