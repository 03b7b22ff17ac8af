// Work that one thread of the host gives to another: PyTorch's task queue for Ascend, the threads of XLA.
#pragma once

#include <vector>

#include "headrace/trace/columns.h"
#include "headrace/trace/correlation.h"
#include "headrace/trace/event_kind.h"

namespace headrace::trace {

/// `work` ran because `from`, on another thread, asked for it earlier.
struct Handover {
  Row work = kNoRow;
  Row from = kNoRow;
};

/// Handovers that the file records, in no particular order; empty for most traces.
///
/// The two ends of a task queue (categories `enqueue` and `dequeue`) carry one `correlation_id`. Events of
/// JAX and TensorFlow carry a type and a number (`_pt` and `_p` of what asks, `_ct` and `_c` of what does the
/// work). Where a file has no such events, flows of category `async_npu` lead from an operator to the work on
/// the device: then the outermost call of the runtime around that work's launch was handed over by the
/// operator.
std::vector<Handover> handovers_of(const Columns& columns, const std::vector<EventKind>& kinds,
                                   const Correlation& correlation);

}  // namespace headrace::trace
