// One call of an operator's body: two clock reads, service time, worker state (disabled: bar 4 ns).
#include "beside_clock.h"
#include "cells.h"
#include "headrace/metrics/operator_probe.h"

namespace {

using headrace::metrics::OperatorProbe;

void operator_call(benchmark::State& state) {
  auto& cells = headrace::bench::Cells::make();
  headrace::metrics::WorkerProbe worker;
  worker.bind(&cells.worker, &cells.op, &cells.clock, headrace::metrics::Clock::now_ns());
  OperatorProbe probe(&worker, &cells.op);
  headrace::bench::beside_clock(state, [&](int) {
    const OperatorProbe::Call call(probe);
    benchmark::ClobberMemory();
  });
  if (cells.op.items.load() == 0) state.SkipWithError("nothing was recorded");
}
HEADRACE_BESIDE_CLOCK(operator_call, "operator_call");

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
