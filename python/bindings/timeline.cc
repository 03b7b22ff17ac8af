// Timelines: one call.
#include "headrace/timeline/merge.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "crossing.h"

namespace py = pybind11;

namespace headrace::python {
namespace {

py::dict merge_timeline(std::vector<std::string> segments, std::vector<std::string> traces, std::string out,
                        const py::object& progress) {
  timeline::MergeRequest request{std::move(segments), std::move(traces), std::move(out), {}};
  // Called from this thread: a place to notice Ctrl-C as well.
  request.progress = [&progress](double share) {
    const LockTaken lock;
    calling_python([&] {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (!progress.is_none()) progress(share);
    });
  };
  timeline::MergeResult merged;
  {
    const LockReleased released;
    merged = timeline::merge(request);
  }
  py::dict result;
  result["path"] = merged.path;
  result["slices"] = merged.slices;
  result["counters"] = merged.counters;
  result["flows"] = merged.flows;
  result["bytes"] = merged.bytes;
  result["clock_error_s"] = merged.clock_error_ns
                                ? py::object(py::float_(static_cast<double>(*merged.clock_error_ns) * 1e-9))
                                : py::none();
  result["notes"] = merged.notes;
  return result;
}

}  // namespace

void add_timeline(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  module.def("merge_timeline", &merge_timeline, py::arg("segments"), py::arg("traces"), py::arg("out"),
             py::arg("progress").none(true));
}

}  // namespace headrace::python
