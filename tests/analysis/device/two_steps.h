// Two steps of training as a profiler records them: what step points and idle time are tested on.
#pragma once

#include "analysis/device/trace_builder.h"

namespace headrace::analysis::device {

/// In microseconds, host above, device below:
///
///     step 0 [0, 100)    loop waits [0, 30)       step 1 [100, 200)   loop waits [100, 150)
///     copy       launched  32  runs [35, 40)
///     forward    launched  41  runs [50, 70)      launched 155        runs [160, 180)
///     backward   launched  60  runs [70, 90)      launched 165        runs [180, 200)
///     all-reduce launched  65  runs [80, 120)     launched 170        runs [190, 205)
///     optimizer  launched  82  runs [120, 130)    launched 185        runs [206, 210)
inline TraceBuilder two_steps() {
  TraceBuilder builder;
  builder.step(0, 0, 100)
      .host("user_annotation", "enumerate(DataLoader)#Multi.__next__", 0, 30)
      .call("cudaMemcpyAsync", 1, 32, 3)
      .copy("Memcpy HtoD", 1, 35, 5)
      .host("cpu_op", "aten::linear", 40, 10)
      .call("cudaLaunchKernel", 2, 41, 2)
      .kernel("forward", 2, 50, 20)
      .host("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 58, 12, 2)
      .call("cudaLaunchKernel", 3, 60, 2, 2)
      .kernel("backward", 3, 70, 20)
      .call("cudaLaunchKernel", 4, 65, 2, 2)
      .kernel("ncclDevKernel_AllReduce", 4, 80, 40, 20)
      .host("user_annotation", "Optimizer.step#SGD.step", 80, 10)
      .call("cudaLaunchKernel", 5, 82, 2)
      .kernel("optimizer", 5, 120, 10);
  builder.step(1, 100, 100)
      .host("user_annotation", "enumerate(DataLoader)#Multi.__next__", 100, 50)
      .host("cpu_op", "aten::linear", 152, 8)
      .call("cudaLaunchKernel", 6, 155, 2)
      .kernel("forward", 6, 160, 20)
      .host("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 162, 12, 2)
      .call("cudaLaunchKernel", 7, 165, 2, 2)
      .kernel("backward", 7, 180, 20)
      .call("cudaLaunchKernel", 8, 170, 2, 2)
      .kernel("ncclDevKernel_AllReduce", 8, 190, 15, 20)
      .host("user_annotation", "Optimizer.step#SGD.step", 182, 10)
      .call("cudaLaunchKernel", 9, 185, 2)
      .kernel("optimizer", 9, 206, 4);
  return builder;
}

}  // namespace headrace::analysis::device
