#include "headrace/queues/queue_kind.h"

#include <fmt/core.h>

#include <algorithm>

#include "headrace/profile/errors.h"

namespace headrace::queues {

std::int64_t checked_capacity(std::int64_t capacity, std::int64_t most) {
  if (capacity < 1) {
    throw UsageError(fmt::format("a queue's capacity is at least 1 item, not {}", capacity));
  }
  if (capacity > most) {
    throw UsageError(
        fmt::format("a queue of capacity {} is more than the {} items it may hold", capacity, most));
  }
  return capacity;
}

std::int64_t checked_room(std::int64_t capacity, std::int64_t asked) {
  checked_capacity(capacity, kMaxItems);
  if (asked == 0) return std::max(capacity, kRoomToGrow);
  if (asked < capacity) {
    throw UsageError(fmt::format("a queue of capacity {} cannot be limited to {} items", capacity, asked));
  }
  return checked_capacity(asked, kMaxItems);
}

}  // namespace headrace::queues
