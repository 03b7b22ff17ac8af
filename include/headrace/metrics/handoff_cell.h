// Costs of passing batches from worker processes to the training loop. Totals over the steady loop; written
// by the process that trains.
#pragma once

#include <cstdint>

#include "headrace/metrics/relaxed.h"

namespace headrace::metrics {

struct HandoffCell {
  Relaxed<std::int64_t> batches;        ///< received, with all of the figures below
  Relaxed<std::int64_t> message_bytes;  ///< through the pipe: what tensors share is not in it
  Relaxed<std::int64_t> tensors;        ///< of the batches whose tensors were counted
  Relaxed<std::int64_t> counted;        ///< ... and how many those were
  Relaxed<std::int64_t> pickle_ns;  ///< from the finished batch to the finished message, in the feeder thread
  Relaxed<std::int64_t> pickle_cpu_ns;     ///< of the batches whose CPU time was read
  Relaxed<std::int64_t> pickle_cpu_reads;  ///< ... and how many those were
  Relaxed<std::int64_t>
      send_ns;  ///< writing the message into the pipe; waits for the reader where it is large
  Relaxed<std::int64_t> receive_ns;      ///< from the message (or the question for it) to the unpickled batch
  Relaxed<std::int64_t> receive_cpu_ns;  ///< of the batches whose CPU time was read
  Relaxed<std::int64_t> receive_cpu_reads;  ///< ... and how many those were
  Relaxed<std::int64_t> unused_batches;     ///< made and never asked for: the loop was left early
};

}  // namespace headrace::metrics
