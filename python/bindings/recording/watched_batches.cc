#include "recording/watched_batches.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <initializer_list>

#include "crossing.h"
#include "headrace/metrics/array_statistics.h"
#include "headrace/metrics/clock.h"
#include "headrace/profile/errors.h"

namespace py = pybind11;

namespace headrace::python {
namespace {

void replace(PyObject*& kept, const py::object& function) {
  PyObject* before = kept;
  kept = function.is_none() ? nullptr : Py_NewRef(function.ptr());
  Py_XDECREF(before);
}

/// See `show_batch`.
std::int64_t time_of(PyObject* kept, std::initializer_list<PyObject*> arguments) {
  const std::int64_t began = metrics::Clock::now_ns();
  const Owned function = Owned::ref(kept);
  bool looked = false;
  if (function) {
    const Owned said(calling_python(
        [&] { return PyObject_Vectorcall(function.get(), arguments.begin(), arguments.size(), nullptr); }));
    looked = said && PyObject_IsTrue(said.get()) == 1;
  }
  forget_failure();
  if (PyErr_Occurred() != nullptr) return -1;
  return looked ? metrics::Clock::now_ns() - began : 0;
}

metrics::Element element_named(const std::string& name) {
  const auto type = metrics::element_of(name);
  if (!type) throw UsageError("no statistics of arrays of " + name);
  return *type;
}

py::tuple tuple_of(const metrics::Moments& of) {
  return py::make_tuple(of.min, of.max, of.mean(), of.deviation(), of.finite, of.nonfinite);
}

const void* pointer(std::uintptr_t address) {
  return reinterpret_cast<const void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

py::tuple statistics_of(std::uintptr_t address, const std::string& type, std::size_t rows, std::size_t parts,
                        std::size_t part_size) {
  const metrics::Element element = element_named(type);
  const metrics::ArrayStatistics found = without_lock(
      [&] { return metrics::array_statistics(pointer(address), element, rows, parts, part_size); });
  py::list by_part;
  for (const metrics::Moments& each : found.parts) by_part.append(tuple_of(each));
  return py::make_tuple(tuple_of(found.all), by_part, found.peaks, found.nonfinite_rows, found.constant_rows);
}

}  // namespace

constinit BatchViewers batch_viewers;

std::int64_t show_batch(const profile::LoaderHandle& loader, PyObject* iterator, std::int64_t number,
                        int worker, PyObject* batch, BatchView view) {
  const Owned id(PyLong_FromLong(loader.id()));
  const Owned of(PyLong_FromLongLong(number));
  const Owned by(PyLong_FromLong(worker));
  if (!id || !of || !by) return time_of(nullptr, {});
  const std::int64_t watched =
      time_of(batch_viewers.watching, {id.get(), iterator, of.get(), by.get(), batch});
  if (watched < 0 || view != BatchView::looked_into) return watched;
  const std::int64_t looked = time_of(batch_viewers.looking, {id.get(), batch});
  return looked < 0 ? looked : watched + looked;
}

void add_watched_batches(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  module.def(
      "watch_batches", [](const py::object& function) { replace(batch_viewers.watching, function); },
      py::arg("function"),
      "watch_batches(function: Callable[[int, Any, int, int, Any], bool] | None) -> None\n``function(loader, "
      "iterator, number, worker, batch)`` is called with each batch that a recorded loop takes; -1: not "
      "known. Its time is not the step's where it returns True. What it raises is forgotten.");
  module.def(
      "look_into_batches", [](const py::object& function) { replace(batch_viewers.looking, function); },
      py::arg("function"),
      "look_into_batches(function: Callable[[int, Any], bool] | None) -> None\n``function(loader, batch)``: "
      "as above, with some batches only: each of a loader's first 64, then 32 of every time twice as many.");
  module.def("array_statistics", &statistics_of, py::arg("address"), py::arg("dtype"), py::arg("rows"),
             py::arg("parts"), py::arg("part_size"),
             "-> tuple[tuple[float, float, float, float, int, int], list[tuple[float, float, float, float, "
             "int, int]], list[float], list[int], list[int]]\nStatistics of ``rows`` x ``parts`` x "
             "``part_size`` contiguous elements: all, each part, largest magnitude of each row, rows with "
             "numbers that are not finite, rows of one value. The memory must stay.");
  module.def(
      "row_hashes",
      [](std::uintptr_t address, std::size_t rows, std::size_t row_bytes, std::uint64_t salt) {
        return metrics::row_hashes(pointer(address), rows, row_bytes, salt);
      },
      py::arg("address"), py::arg("rows"), py::arg("row_bytes"), py::arg("salt"));
}

}  // namespace headrace::python
