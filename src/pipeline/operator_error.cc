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

}  // namespace headrace::pipeline
