// The exception of a body, as the sink throws it.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "headrace/pipeline/operator.h"
#include "headrace/pipeline/recorded_loop.h"
#include "headrace/profile/errors.h"

namespace headrace::pipeline {

/// An exception of an operator's body, with the place where it happened. The body's own exception is
/// `cause()`.
class OperatorError : public Error {
 public:
  OperatorError(std::string op, std::uint64_t item, std::exception_ptr cause);

  const std::string& operator_name() const noexcept { return operator_; }
  /// The item's number at that operator, from 0: its place in the input where nothing before it drops or
  /// combines items.
  std::uint64_t item() const noexcept { return item_; }
  const std::exception_ptr& cause() const noexcept { return cause_; }

 private:
  std::string operator_;
  std::uint64_t item_;
  std::exception_ptr cause_;
};

/// Called where the exception is caught. Ends the pass with it, under the operator's name and the item's
/// number; or counts it, if such items are to be skipped. True: continue with the next item.
bool skip_after_failure(const Operator& op, WorkerSlot& slot, RecordedLoop& loop,
                        std::uint64_t number) noexcept;

}  // namespace headrace::pipeline
