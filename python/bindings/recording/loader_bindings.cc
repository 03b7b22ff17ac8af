// Python objects of a framework loader's adapter: the watch over an iterator, the writer in a
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
  py::class_<IteratorWatch>(module, "IteratorWatch",
                            "The loop over one iterator of a framework's loader, and where its batches are.")
      .def(py::init<std::shared_ptr<profile::LoaderHandle>, bool>(), py::arg("loader"),
           py::arg("begins") = true, "``begins``: the loop begins now; False: with its first GetNext.")
      .def(
          "follow",
          [](IteratorWatch& self, int workers, int window, bool in_order, bool pins, std::uint32_t pass) {
            self.follow({workers, window, in_order, pins, pass});
          },
          py::arg("workers"), py::arg("window"), py::arg("in_order"), py::arg("pins"), py::arg("pass_number"),
          "Follow the batches of its worker processes; ``window`` of them are in flight at most.")
      .def("dispatched_at_start", &IteratorWatch::dispatched_at_start, py::arg("worker"), py::arg("batch"),
           "The number of a batch was given to a worker while the iterator was being made.")
      .def("restart", &IteratorWatch::restart, "This iterator begins another epoch.")
      .def("end_loop", &IteratorWatch::end_loop,
           "The loop over it ends; another one begins with its next GetNext.")
      .def("nest_in", &IteratorWatch::nest_in, py::arg("outer"),
           "Its batches are parts of those of an iterator around it, whose GetNext calls ``outer`` records.")
      .def("end_outer_wait", &IteratorWatch::end_outer_wait, py::arg("delivered"), py::arg("failed"),
           "The GetNext around it is over, which its batches kept waiting.")
      .def_property_readonly("loader", &IteratorWatch::loader)
      .def("end", &IteratorWatch::end);
  module.def("next_pass", &profile::BatchTracker::next_pass,
             "A number that distinguishes the workers of this iterator from all others.");

  using profile::LoopRecorder;
  py::class_<LoopRecorder, std::shared_ptr<LoopRecorder>>(
      module, "LoopRecorder",
      "One pass of a loop without an iterator: its waits are marked by the thread that runs it.")
      .def(py::init<std::shared_ptr<profile::LoaderHandle>>(), py::arg("loader"), "The loop begins now.")
      .def("begin_wait", &LoopRecorder::begin_wait)
      .def(
          "end_wait",
          [](LoopRecorder& self, bool delivered, bool failed, int ready) {
            self.end_wait(delivered, failed, ready);
          },
          py::arg("delivered"), py::arg("failed"), py::arg("ready") = -1,
          "Not ``delivered``: the loop ends. ``failed``: by an exception, after which it may go "
          "on.\n``ready``: 1 or 0, whether the batch was there when it was asked for; -1: the queues tell.")
      .def("end_loop", &LoopRecorder::end_loop);

  using profile::DeliveryWriter;
  py::class_<DeliveryWriter, std::shared_ptr<DeliveryWriter>>(
      module, "DeliveryWriter",
      "Events of a worker process for the training process: when it took, made and sent each batch.")
      .def_static(
          "enter",
          [](int loader, std::uint32_t pass, int number, int siblings) {
            return DeliveryWriter::enter({loader, pass, number, siblings});
          },
          py::arg("loader"), py::arg("pass_number"), py::arg("number"), py::arg("siblings"),
          "-> DeliveryWriter | None\nEnter the calling thread as worker ``number``; None if nothing is "
          "recorded.");

  module.def(
      "note_device", &profile::note_device, py::arg("device"),
      "The loop that runs on this thread copies its batches to ``device``: one more setting of its loader.");
  module.def(
      "miss",
      [](int loader, std::uint32_t gap) {
        const auto session = profile::CurrentSession::peek();
        profile::LoaderRecord* record = session == nullptr ? nullptr : session->loader_record(loader);
        if (record != nullptr) record->gaps.set_bits(gap);
      },
      py::arg("loader"), py::arg("gap"), "`LoaderHandle.miss`, from a worker process.");
  module.def(
      "note",
      [](int loader, const std::string& key, const std::string& value) {
        const auto session = profile::CurrentSession::peek();
        profile::LoaderRecord* record = session == nullptr ? nullptr : session->loader_record(loader);
        if (record != nullptr) profile::note_fact(*record, key, value);
      },
      py::arg("loader"), py::arg("key"), py::arg("value"), "`LoaderHandle.note`, from a worker process.");

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
