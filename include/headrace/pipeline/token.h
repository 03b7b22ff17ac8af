// The tokens in a pipeline's queues.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "headrace/pipeline/item_trace.h"

namespace headrace::pipeline {

/// An item and its place in the order in which it leaves the queue behind the operator that made it, from 0
/// without gaps. An operator that leaves an item out in the middle of an order hands on an empty one.
template <class T>
struct Token {
  std::optional<T> item;
  std::uint64_t number = 0;
  std::unique_ptr<ItemTrace> trace;  ///< null if the item is not traced (fast sources: 31 of 32)
};

}  // namespace headrace::pipeline
