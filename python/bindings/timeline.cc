// Timelines: one call.
#include "headrace/timeline/merge.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>

#include "crossing.h"

namespace py = pybind11;
using namespace py::literals;

namespace headrace::python {
namespace {

using Path = std::filesystem::path;

std::vector<std::string> strings_of(const std::vector<Path>& paths) {
  std::vector<std::string> strings;
  for (const Path& path : paths) strings.push_back(path.string());
  return strings;
}

py::dict merge_timeline(const std::vector<Path>& segments, const std::vector<Path>& traces, const Path& out,
                        const py::object& progress) {
  timeline::MergeRequest request{strings_of(segments), strings_of(traces), out.string(), {}};
  // Called from this thread: a place to notice Ctrl-C as well.
  request.progress = [&progress](double share) {
    const LockTaken lock;
    calling_python([&] {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (!progress.is_none()) progress(share);
    });
  };
  const timeline::MergeResult merged = without_lock([&] { return timeline::merge(request); });
  py::dict result(
      "path"_a = py::reinterpret_steal<py::str>(PyUnicode_DecodeFSDefault(merged.path.c_str())),
      "slices"_a = merged.slices, "counters"_a = merged.counters, "flows"_a = merged.flows,
      "bytes"_a = merged.bytes,
      "clock_error_s"_a = merged.clock_error_ns
                              ? py::object(py::float_(static_cast<double>(*merged.clock_error_ns) * 1e-9))
                              : py::none(),
      "notes"_a = merged.notes);
  return result;
}

}  // namespace

void add_timeline(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  module.def("merge_timeline", &merge_timeline, py::arg("segments"), py::arg("traces"), py::arg("out"),
             py::arg("progress").none(true),
             "merge_timeline(segments: Sequence[str | os.PathLike[str]], traces: Sequence[str | "
             "os.PathLike[str]], out: str | os.PathLike[str], progress: Callable[[float], object] | None) -> "
             "dict[str, Any]\n``{\"path\", \"slices\", \"counters\", \"flows\", \"bytes\", "
             "\"clock_error_s\", \"notes\"}``. Ctrl-C ends it.");
}

}  // namespace headrace::python
