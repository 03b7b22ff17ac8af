// Marks that a program sets: named ranges, parts of a training step, requests to remote services. Crossing only.
#include <pybind11/pybind11.h>

#include <string_view>

#include "crossing.h"
#include "headrace/profile/annotation.h"
#include "headrace/profile/remote_call.h"
#include "headrace/profile/step.h"

namespace py = pybind11;

namespace headrace::python {

void add_marks(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  module.def("annotate_begin", &profile::annotate_begin, py::arg("name"),
             "Never raises; does nothing if nothing is recorded.");
  module.def("annotate_end", &profile::annotate_end);
  module.def(
      "forward_began", &profile::forward_began,
      "From any thread; the first in a step counts. Does nothing if no wrapped loop runs. Never raises.");
  module.def("backward_ended", &profile::backward_ended,
             "As `forward_began`, but the last in a step counts.");
  module.def("update_began", &profile::update_began, "As `backward_ended`, if there is no other mark.");
  module.def("step_begin", &profile::step_begin, "`forward_began` and the beginning of a range \"step\".");
  module.def("step_end", &profile::step_end, "`backward_ended` and the end of that range.");
  using profile::RemoteCall;
  module.def("remote_owner", &profile::remote_owner,
             "Owner that requests of this thread are charged to; 0 if nothing is recorded.");
  py::class_<RemoteCall>(module, "RemoteCall",
                         "One request to a remote service. Dropped before its end, it ends then.")
      .def_static(
          "begin",
          [](std::uint32_t owner, std::string_view target, bool is_retry, std::int64_t backoff_ns,
             std::int64_t pause_ns) {
            if (owner == 0) owner = profile::remote_owner();
            return owner == 0 ? nullptr
                              : std::make_unique<RemoteCall>(owner, target, is_retry, backoff_ns, pause_ns);
          },
          py::arg("owner"), py::arg("target"), py::arg("is_retry") = false, py::arg("backoff_ns") = 0,
          py::arg("pause_ns") = -1,
          "begin(owner: int, target: bytes, is_retry: bool=False, backoff_ns: int=0, pause_ns: int=-1) -> "
          "RemoteCall | None\nFrom now on. None: nothing is recorded. ``owner`` 0: `remote_owner` of this "
          "thread.\n``target`` names the object (host, path, range); two bits of its hash are kept. "
          "``is_retry``: the same was refused ``backoff_ns`` ago. ``pause_ns``: for how long the thread that "
          "waits asked for nothing, where that is another thread.")
      .def("answered", &RemoteCall::answered, py::arg("status"))
      .def("ended", &RemoteCall::ended, py::arg("body_bytes"), "The body is here. Counts once.")
      .def("failed", &RemoteCall::failed, py::arg("body_bytes"),
           "There is no answer, or it broke off after so many bytes. Counts once.");
}

}  // namespace headrace::python
