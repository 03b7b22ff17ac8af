// What an adapter of a framework's loader holds in Python: the watch over an iterator, the writer in a
// worker; and a loop whose waits Python code marks itself.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "crossing.h"
#include "headrace/profile/delivery_writer.h"
#include "headrace/profile/iterator_watch.h"
#include "headrace/profile/stages.h"

namespace py = pybind11;

namespace headrace::python {
namespace {

template <class T>
T* pointer_to(PyObject* object, const char* wanted) {
  if (py::isinstance<T>(py::handle(object))) return py::cast<T*>(py::handle(object));
  PyErr_Format(PyExc_TypeError, "needs a %s, not %.200s", wanted, Py_TYPE(object)->tp_name);
  return nullptr;
}

}  // namespace

profile::IteratorWatch* iterator_watch_of(PyObject* object) {
  return pointer_to<profile::IteratorWatch>(object, "headrace._core.IteratorWatch");
}

std::shared_ptr<profile::BatchTracker> batch_tracker_of(PyObject* object) {
  const profile::IteratorWatch* watch = iterator_watch_of(object);
  if (watch == nullptr) return nullptr;
  if (watch->tracker() == nullptr) PyErr_SetString(PyExc_ValueError, "this watch follows no batches");
  return watch->tracker();
}

std::shared_ptr<profile::DeliveryWriter> delivery_writer_of(PyObject* object) {
  if (pointer_to<profile::DeliveryWriter>(object, "headrace._core.DeliveryWriter") == nullptr) return nullptr;
  return py::cast<std::shared_ptr<profile::DeliveryWriter>>(py::handle(object));
}

void add_loader_bindings(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  using profile::IteratorWatch;
  py::class_<IteratorWatch>(module, "IteratorWatch")
      .def(py::init<std::shared_ptr<profile::LoaderHandle>, bool>(), py::arg("loader"),
           py::arg("begins") = true)
      .def(
          "follow",
          [](IteratorWatch& self, int workers, int window, bool in_order, bool pins, std::uint32_t pass) {
            self.follow({workers, window, in_order, pins, pass});
          },
          py::arg("workers"), py::arg("window"), py::arg("in_order"), py::arg("pins"), py::arg("pass_number"))
      .def("dispatched_at_start", &IteratorWatch::dispatched_at_start, py::arg("worker"), py::arg("batch"))
      .def("restart", &IteratorWatch::restart)
      .def("end_loop", &IteratorWatch::end_loop)
      .def("nest_in", &IteratorWatch::nest_in, py::arg("outer"))
      .def("end_outer_wait", &IteratorWatch::end_outer_wait, py::arg("delivered"), py::arg("failed"))
      .def_property_readonly("loader", &IteratorWatch::loader)
      .def("end", &IteratorWatch::end);
  module.def("next_pass", &profile::BatchTracker::next_pass);

  using profile::LoopRecorder;
  py::class_<LoopRecorder, std::shared_ptr<LoopRecorder>>(module, "LoopRecorder")
      .def(py::init<std::shared_ptr<profile::LoaderHandle>>(), py::arg("loader"))
      .def("begin_wait", &LoopRecorder::begin_wait)
      .def(
          "end_wait",
          [](LoopRecorder& self, bool delivered, bool failed, int ready) {
            self.end_wait(delivered, failed, ready);
          },
          py::arg("delivered"), py::arg("failed"), py::arg("ready") = -1)
      .def("end_loop", &LoopRecorder::end_loop);

  using profile::DeliveryWriter;
  py::class_<DeliveryWriter, std::shared_ptr<DeliveryWriter>>(module, "DeliveryWriter")
      .def_static(
          "enter",
          [](int loader, std::uint32_t pass, int number, int siblings) {
            return DeliveryWriter::enter({loader, pass, number, siblings});
          },
          py::arg("loader"), py::arg("pass_number"), py::arg("number"), py::arg("siblings"));

  module.def("note_device", &profile::note_device, py::arg("device"));
  module.def(
      "miss",
      [](int loader, std::uint32_t gap) {
        const auto session = profile::CurrentSession::peek();
        profile::LoaderRecord* record = session == nullptr ? nullptr : session->loader_record(loader);
        if (record != nullptr) record->gaps.set_bits(gap);
      },
      py::arg("loader"), py::arg("gap"));
  module.def(
      "note",
      [](int loader, const std::string& key, const std::string& value) {
        const auto session = profile::CurrentSession::peek();
        profile::LoaderRecord* record = session == nullptr ? nullptr : session->loader_record(loader);
        if (record != nullptr) profile::note_fact(*record, key, value);
      },
      py::arg("loader"), py::arg("key"), py::arg("value"));

  module.attr("NO_ITERATOR_DETAIL") = static_cast<std::uint32_t>(profile::kNoIteratorDetail);
  module.attr("NO_WORKER_DETAIL") = static_cast<std::uint32_t>(profile::kNoWorkerDetail);
  module.attr("NO_HANDOFF_DETAIL") = static_cast<std::uint32_t>(profile::kNoHandoffDetail);
  module.attr("PLACES_PER_STAGE") = profile::kPlacesPerStage;
  module.attr("STAGE_SAMPLER") = profile::kStageSampler;
  module.attr("STAGE_DATASET") = profile::kStageDataset;
  module.attr("STAGE_TRANSFORM") = profile::kStageTransform;
  module.attr("STAGE_COLLATE") = profile::kStageCollate;
}

}  // namespace headrace::python
