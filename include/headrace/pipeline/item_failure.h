// Handling of an exception of an operator's body.
#pragma once

#include <cstdint>
#include <exception>

#include "headrace/pipeline/operator.h"
#include "headrace/pipeline/recorded_loop.h"

namespace headrace::pipeline {

/// Called where the exception is caught. Ends the pass with it, under the operator's name and the item's
/// number; or counts it, if such items are to be skipped. True: continue with the next item.
bool skip_after_failure(const Operator& op, WorkerSlot& slot, RecordedLoop& loop,
                        std::uint64_t number) noexcept;

}  // namespace headrace::pipeline
