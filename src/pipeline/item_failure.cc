#include "headrace/pipeline/item_failure.h"

#include "headrace/pipeline/operator_error.h"

namespace headrace::pipeline {

bool skip_after_failure(const Operator& op, WorkerSlot& slot, RecordedLoop& loop,
                        std::uint64_t number) noexcept try {
  loop.failed();
  if (op.settings().on_error == OnError::skip) return true;
  slot.stop.fail(std::make_exception_ptr(OperatorError(op.name(), number, std::current_exception())));
  return false;
} catch (...) {
  // No memory for the message: the body's own exception must do.
  slot.stop.fail(std::current_exception());
  return false;
}

}  // namespace headrace::pipeline
