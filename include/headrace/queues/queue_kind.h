// Interface of all kinds of bounded queues, so that one blocking layer and one instrumentation serve them all.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "headrace/queues/queue_status.h"

namespace headrace::queues {

/// Result of one try: done, not_now or closed. `number` counts the kind's puts (or gets) from 0 and is
/// set when it is done; the instrumentation picks its samples by it.
struct Attempt {
  QueueStatus status = QueueStatus::not_now;
  std::uint64_t number = 0;
};

/// The largest capacity of a queue: more is a mistake in the units.
inline constexpr std::int64_t kMaxItems = std::int64_t{1} << 24;
/// Room that a queue reserves if no limit for its capacity is given.
inline constexpr std::int64_t kRoomToGrow = 1024;

/// A kind moves items in and out and never waits. All calls are thread-safe as far as the kind's own header
/// allows (SpscQueue: one thread puts, one gets).
///
/// - `try_push(item)` moves from `item` only when it is done.
/// - `try_pop(out)` says `closed` only when no item is inside *and none can still arrive*: a put that
/// returned
///   done is never lost. Until that is certain (a put is in flight) it says not_now.
/// - `puts()`, `gets()`: how many began and ended so far; their difference is the level, off by the calls in
///   flight. They cost nothing that the kind would not do anyway, or next to nothing.
/// - `set_capacity(n)` applies from the next put on; `n` up to `max_capacity()`. Items inside stay.
/// - `kAnyPutMayGo`: after a get any waiting put may go on, so waking one is enough.
template <class Kind>
concept QueueKind = requires(Kind& kind, const Kind& seen, typename Kind::value_type& item,
                             std::optional<typename Kind::value_type>& out, std::int64_t capacity) {
  requires std::constructible_from<Kind, std::int64_t, std::int64_t>;  // capacity, the most it may become
  { kind.try_push(item) } -> std::same_as<Attempt>;
  { kind.try_pop(out) } -> std::same_as<Attempt>;
  { kind.close() } noexcept;
  { kind.set_capacity(capacity) };
  { seen.capacity() } noexcept -> std::same_as<std::int64_t>;
  { seen.max_capacity() } noexcept -> std::same_as<std::int64_t>;
  { seen.puts() } noexcept -> std::same_as<std::uint64_t>;
  { seen.gets() } noexcept -> std::same_as<std::uint64_t>;
  { seen.closed() } noexcept -> std::same_as<bool>;
  { Kind::kAnyPutMayGo } -> std::convertible_to<bool>;
};

/// An item that throws while it moves would leave a slot half filled, with no one to report it to.
template <class T>
inline constexpr bool kMovesSafely =
    std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>;

/// Items inside now; between 0 and the capacity (after the capacity shrank: what is still inside).
template <QueueKind Kind>
std::int64_t level_of(const Kind& kind) noexcept {
  const std::uint64_t gets = kind.gets();  // first: puts can only have grown since
  const auto level = static_cast<std::int64_t>(kind.puts() - gets);
  return level < 0 ? 0 : level;
}

/// `capacity` if a queue may have it; UsageError if it is below 1 or above `most`.
std::int64_t checked_capacity(std::int64_t capacity, std::int64_t most);
/// How far the capacity may grow: `asked`, or kRoomToGrow if `asked` is 0; never less than `capacity`.
/// UsageError if `asked` is below `capacity` or above kMaxItems.
std::int64_t checked_room(std::int64_t capacity, std::int64_t asked);

}  // namespace headrace::queues
