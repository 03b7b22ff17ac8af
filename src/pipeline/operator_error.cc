#include "headrace/pipeline/operator_error.h"

#include <utility>

namespace headrace::pipeline {
namespace {

std::string text_of(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}  // namespace

OperatorError::OperatorError(std::string op, std::uint64_t item, std::exception_ptr cause)
    : Error("operator '" + op + "', item " + std::to_string(item) + ": " + text_of(cause)),
      operator_(std::move(op)),
      item_(item),
      cause_(std::move(cause)) {}

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
