// Bytes as a file of any profiler: whichever reader recognises them, and what is made of its rows.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "demand.h"
#include "demand_rows.h"
#include "headrace/analysis/device/steps.h"
#include "headrace/analysis/device/time_breakdown.h"
#include "headrace/analysis/traced_input.h"
#include "headrace/profile/errors.h"
#include "headrace/trace/trace.h"

namespace {

using namespace headrace;

void look_at(trace::TraceFile file) {
  demand_rows(file.columns);
  std::vector<trace::Trace> traces;
  traces.push_back(trace::resolve(std::move(file)));
  const analysis::Table times = analysis::device::time_breakdown(traces);
  for (const double idle : times.numbers("idle_s")) demand(idle >= 0, "idle time is not negative");
  analysis::device::kernels(traces);
  analysis::device::step_breakdown(traces);
  if (const auto input = analysis::traced_input(traces.front())) {
    demand(input->elapsed_s > 0, "steps take time");
    for (const profile::OperatorProfile& op : input->operators)
      demand(op.states.busy >= 0 && op.states.busy <= 1, "shares are shares");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    for (trace::TraceFile& file : trace::read_bytes(bytes, "input")) look_at(std::move(file));
  } catch (const FormatError&) {
  }
  return 0;
}
