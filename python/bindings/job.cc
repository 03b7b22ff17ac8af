// The simulation of a job from the operations of its ranks. Crossing only.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "crossing.h"
#include "headrace/analysis/job/simulation.h"

namespace py = pybind11;

namespace headrace::python {

namespace job = analysis::job;

void add_job(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  using Numbers = std::vector<std::int64_t>;
  using Seconds = std::vector<double>;
  using Workers = std::vector<std::pair<std::int32_t, std::int32_t>>;
  py::class_<job::JobSimulation>(module, "JobSimulation")
      .def(py::init([](std::vector<std::string> type, Numbers dp_rank, Numbers stage, Numbers step,
                       Seconds start_s, Seconds duration_s, Numbers sequence, Numbers chunk,
                       Numbers model_chunk, Numbers micro_batch) {
             const LockReleased released;
             return job::JobSimulation(
                 job::operations_of({std::move(type), std::move(dp_rank), std::move(stage), std::move(step),
                                     std::move(start_s), std::move(duration_s), std::move(sequence),
                                     std::move(chunk), std::move(model_chunk), std::move(micro_batch)}));
           }),
           py::arg("type"), py::arg("dp_rank"), py::arg("stage"), py::arg("step"), py::arg("start_s"),
           py::arg("duration_s"), py::arg("sequence"), py::arg("chunk"), py::arg("model_chunk"),
           py::arg("micro_batch"))
      .def_property_readonly("steps", &job::JobSimulation::steps)
      .def_property_readonly("dp_ranks", &job::JobSimulation::dp_ranks)
      .def_property_readonly("stages", &job::JobSimulation::stages)
      .def_property_readonly("kinds", &job::JobSimulation::kinds)
      .def_property_readonly("unpaired", &job::JobSimulation::unpaired)
      .def("recorded_s", &job::JobSimulation::recorded_s, py::call_guard<LockReleased>())
      .def(
          "step_s",
          [](const job::JobSimulation& self, std::optional<std::int32_t> dp_rank,
             std::optional<std::int32_t> stage, std::optional<std::string> kind, Workers workers, bool others,
             bool with_launch_delays) {
            const LockReleased released;
            return self.step_s({dp_rank, stage, std::move(kind), std::move(workers), others},
                               with_launch_delays);
          },
          py::kw_only(), py::arg("dp_rank") = py::none(), py::arg("stage") = py::none(),
          py::arg("kind") = py::none(), py::arg("workers") = Workers{}, py::arg("others") = false,
          py::arg("with_launch_delays") = false);
}

}  // namespace headrace::python
