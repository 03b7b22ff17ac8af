// What the sink throws when a body threw.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

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

}  // namespace headrace::pipeline
