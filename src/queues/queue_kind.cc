#include "headrace/queues/queue_kind.h"

#include <algorithm>
#include <string>

#include "headrace/profile/errors.h"

namespace headrace::queues {

std::int64_t checked_capacity(std::int64_t capacity, std::int64_t most) {
  if (capacity < 1) {
    throw UsageError("a queue's capacity is at least 1 item, not " + std::to_string(capacity));
  }
  if (capacity > most) {
    throw UsageError("a queue of capacity " + std::to_string(capacity) + " is more than the " +
                     std::to_string(most) + " items it may hold");
  }
  return capacity;
}

std::int64_t checked_room(std::int64_t capacity, std::int64_t asked) {
  checked_capacity(capacity, kMostItems);
  if (asked == 0) return std::max(capacity, kRoomToGrow);
  if (asked < capacity) {
    throw UsageError("a queue of capacity " + std::to_string(capacity) + " cannot be limited to " +
                     std::to_string(asked) + " items");
  }
  return checked_capacity(asked, kMostItems);
}

}  // namespace headrace::queues
