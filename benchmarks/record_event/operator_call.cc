// One call of an operator's body: two clock reads, service time, worker state (disabled: bar 4 ns).
#include "beside_clock.h"
#include "cells.h"
#include "headrace/metrics/operator_probe.h"

namespace {

using headrace::metrics::OperatorProbe;

/// `with_history`: the states are kept for the timeline too, as they are in a run.
void operator_call(benchmark::State& state, bool with_history) {
  auto& cells = headrace::bench::Cells::make();
  headrace::metrics::WorkerProbe worker;
  worker.bind(&cells.worker, &cells.op, &cells.clock, headrace::metrics::Clock::now_ns());
  if (with_history) worker.keep_history(cells.history());
  OperatorProbe probe(&worker, &cells.op);
  headrace::bench::beside_clock(state, [&](int) {
    const OperatorProbe::Call call(probe);
    benchmark::ClobberMemory();
  });
  if (cells.op.items.load() == 0) state.SkipWithError("nothing was recorded");
}
void operator_call_recorded(benchmark::State& state) { operator_call(state, true); }
void operator_call_without_history(benchmark::State& state) { operator_call(state, false); }
HEADRACE_BESIDE_CLOCK(operator_call_recorded, "operator_call");
HEADRACE_BESIDE_CLOCK(operator_call_without_history, "operator_call_without_history");

void operator_call_unbound(benchmark::State& state) {
  OperatorProbe probe;
  benchmark::DoNotOptimize(probe);
  headrace::bench::beside_clock(state, [&](int) {
    const OperatorProbe::Call call(probe);
    benchmark::ClobberMemory();
  });
}
HEADRACE_BESIDE_CLOCK(operator_call_unbound, "operator_call_disabled");

}  // namespace
