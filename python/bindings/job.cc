// The simulation of a job from the operations of its ranks. Crossing only.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "crossing.h"
#include "device_trace.h"
#include "headrace/analysis/device/job_operations.h"
#include "headrace/analysis/job/simulation.h"
#include "headrace/trace/process_groups.h"

namespace py = pybind11;

namespace headrace::python {

namespace job = analysis::job;

namespace {

job::Delays delays_of(const std::string& name) {
  if (name == "none") return job::Delays::none;
  return name == "recorded" ? job::Delays::recorded : job::Delays::without_input;
}

/// As JobSimulation takes them.
py::dict columns_of(const job::Operations& operations) {
  const auto column = [&](const auto& value_of) {
    py::list values;
    for (const job::Operation& each : operations) values.append(std::invoke(value_of, each));
    return values;
  };
  py::dict columns;
  columns["type"] = column([](const job::Operation& each) { return job::name_of(each.type); });
  columns["dp_rank"] = column(&job::Operation::dp_rank);
  columns["stage"] = column(&job::Operation::stage);
  columns["step"] = column(&job::Operation::step);
  columns["start_s"] = column(&job::Operation::start_s);
  columns["duration_s"] = column(&job::Operation::duration_s);
  columns["sequence"] = column(&job::Operation::sequence);
  columns["chunk"] = column(&job::Operation::chunk);
  columns["model_chunk"] = column(&job::Operation::model_chunk);
  columns["micro_batch"] = column(&job::Operation::micro_batch);
  columns["input_s"] = column(&job::Operation::input_s);
  columns["kernel"] = column(&job::Operation::kernel);
  return columns;
}

}  // namespace

void add_job(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  using Numbers = std::vector<std::int64_t>;
  using Seconds = std::vector<double>;
  using Workers = std::vector<std::pair<std::int32_t, std::int32_t>>;
  py::class_<job::JobSimulation>(module, "JobSimulation",
                                 "Simulated step times of a job; `Job` of headrace.job explains them.")
      .def(py::init([](std::vector<std::string> type, Numbers dp_rank, Numbers stage, Numbers step,
                       Seconds start_s, Seconds duration_s, Numbers sequence, Numbers chunk,
                       Numbers model_chunk, Numbers micro_batch, Seconds input_s, Numbers kernel) {
             const LockReleased released;
             return job::JobSimulation(job::operations_of(
                 {std::move(type), std::move(dp_rank), std::move(stage), std::move(step), std::move(start_s),
                  std::move(duration_s), std::move(sequence), std::move(chunk), std::move(model_chunk),
                  std::move(micro_batch), std::move(input_s), std::move(kernel)}));
           }),
           py::arg("type"), py::arg("dp_rank"), py::arg("stage"), py::arg("step"), py::arg("start_s"),
           py::arg("duration_s"), py::arg("sequence"), py::arg("chunk"), py::arg("model_chunk"),
           py::arg("micro_batch"), py::arg("input_s"), py::arg("kernel"))
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
             const std::string& delays) {
            const LockReleased released;
            return self.step_s({dp_rank, stage, std::move(kind), std::move(workers), others},
                               delays_of(delays));
          },
          py::kw_only(), py::arg("dp_rank") = py::none(), py::arg("stage") = py::none(),
          py::arg("kind") = py::none(), py::arg("workers") = Workers{}, py::arg("others") = false,
          py::arg("delays") = "none",
          "step_s(*, dp_rank: int | None=None, stage: int | None=None, kind: str | None=None, workers: "
          "Sequence[tuple[int, int]]=..., others: bool=False, delays: Literal['none', 'recorded', "
          "'without_input']='none') -> list[float]");
  module.def(
      "job_operations",
      [](const TraceSet set, std::int64_t rank, const std::vector<std::int64_t>& steps,
         const std::vector<std::vector<std::int64_t>>& stages) {
        const analysis::device::RankOperations found = without_lock([&] {
          const trace::Trace& trace = set.traces()[0];
          return analysis::device::job_operations(trace, trace::process_groups(trace.file), rank, steps,
                                                  stages);
        });
        return py::make_tuple(found.missing, found.expected, columns_of(found.operations));
      },
      py::arg("traces"), py::arg("rank"), py::arg("steps"), py::arg("stages"),
      "Parts that the first trace does not record, whether it was expected to, and columns for a "
      "JobSimulation.\nAs declared in analysis/device/job_operations.h.");
}

}  // namespace headrace::python
