// A kind of headrace as a contender.
#pragma once

#include <optional>

#include "headrace/queues/queue_kind.h"
#include "transfer.h"

namespace headrace::bench {

template <class Kind>
void put_item(Kind& kind, std::uint64_t item) {
  insist([&] { return kind.try_push(item).status == queues::QueueStatus::done; });
}
template <class Kind>
std::uint64_t get_item(Kind& kind) {
  std::optional<std::uint64_t> out;
  insist([&] { return kind.try_pop(out).status == queues::QueueStatus::done; });
  return *out;
}

template <class Kind>
Took transfer_through_kind(Crowd crowd, std::uint64_t items) {
  Kind kind(kCapacity);
  return transfer(
      crowd, items, [&](std::uint64_t item) { put_item(kind, item); }, [&] { return get_item(kind); });
}
template <class Kind>
Took alone_with_kind(Crowd, std::uint64_t items) {
  Kind kind(kCapacity);
  return alone(items, [&](std::uint64_t item) { put_item(kind, item); }, [&] { return get_item(kind); });
}

}  // namespace headrace::bench
