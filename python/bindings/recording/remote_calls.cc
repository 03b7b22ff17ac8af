// Requests to remote services, as the hooks around their clients report them. Crossing only.
#include <pybind11/pybind11.h>

#include <string_view>

#include "crossing.h"
#include "headrace/profile/remote_call.h"

namespace py = pybind11;

namespace headrace::python {

void add_remote_calls(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  using profile::RemoteCall;
  module.def("remote_owner", &profile::remote_owner);
  py::class_<RemoteCall>(module, "RemoteCall")
      .def_static(
          "begin",
          [](std::uint32_t owner, std::string_view target, bool is_retry, std::int64_t backoff_ns,
             std::int64_t pause_ns) {
            if (owner == 0) owner = profile::remote_owner();
            return owner == 0 ? nullptr
                              : std::make_unique<RemoteCall>(owner, target, is_retry, backoff_ns, pause_ns);
          },
          py::arg("owner"), py::arg("target"), py::arg("is_retry") = false, py::arg("backoff_ns") = 0,
          py::arg("pause_ns") = -1)
      .def("answered", &RemoteCall::answered, py::arg("status"))
      .def("ended", &RemoteCall::ended, py::arg("body_bytes"))
      .def("failed", &RemoteCall::failed, py::arg("body_bytes"));
}

}  // namespace headrace::python
