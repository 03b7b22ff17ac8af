// Costs of passing batches between processes. Declared as figure.h says; part of profile.h.
#pragma once

#include <cstdint>

#include "headrace/profile/figure.h"

namespace headrace::profile {

struct Handoff {
  std::uint64_t batches = 0;
  double message_bytes = 0;
  double tensors = 0;
  double pickle_s = 0;
  double pickle_cpu_s = 0;
  double send_s = 0;
  double receive_s = 0;
  double receive_cpu_s = 0;
  std::uint64_t unused_batches = 0;
};

constexpr About about(Of<Handoff>) {
  return {"Handoff",
          "What passing batches from worker processes to the training loop costs: means per batch, except "
          "the counts."};
}
template <class Visit>
constexpr void figures_of(Of<Handoff>, Visit&& figure) {
  figure("batches", &Handoff::batches, {"Received."});
  figure("message_bytes", &Handoff::message_bytes,
         {"Size of the pickled message that goes through the pipe: 0.3 to 1 kB for tensors; megabytes are "
          "arrays, see "
          "`handoff`."});
  figure("tensors", &Handoff::tensors, {"Passed through shared memory, each 0.2 to 0.4 ms to receive."});
  figure(
      "pickle_s", &Handoff::pickle_s,
      {"Packing, in the worker: 0.5 to 1 ms. Far more wall than CPU time: the worker is too busy to send."});
  figure("pickle_cpu_s", &Handoff::pickle_cpu_s, {"CPU time of that."});
  figure("send_s", &Handoff::send_s, {"Writing it into the pipe: 0.2 ms; more, and the pipe is full."});
  figure("receive_s", &Handoff::receive_s,
         {"Unpacking, in the loop's process: 1 to 1.5 ms, however many workers there are."});
  figure("receive_cpu_s", &Handoff::receive_cpu_s, {"CPU time of that, 0.7 ms."});
  figure("unused_batches", &Handoff::unused_batches, {"Prefetched and never used: the loop was left early."});
}

struct HandoffEstimate {
  double message_bytes = 0;
  double tensors = 0;
  double pickle_cpu_s = 0;
};

constexpr About about(Of<HandoffEstimate>) {
  return {"HandoffEstimate",
          "What passing a batch from a worker process would cost a loader that has none, from at most two "
          "batches."};
}
template <class Visit>
constexpr void figures_of(Of<HandoffEstimate>, Visit&& figure) {
  figure("message_bytes", &HandoffEstimate::message_bytes,
         {"Pickled objects and arrays, which would pass through a pipe; a lower bound from 1 MB on."});
  figure("tensors", &HandoffEstimate::tensors, {"Would pass through shared memory."});
  figure("pickle_cpu_s", &HandoffEstimate::pickle_cpu_s,
         {"CPU time for pickling the objects around them. A millisecond or more: return plain containers of "
          "tensors before adding workers."});
}

}  // namespace headrace::profile
