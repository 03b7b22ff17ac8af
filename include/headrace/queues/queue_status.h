// How a put or a get ended.
#pragma once

namespace headrace::queues {

/// - done: the item moved.
/// - not_now: no room, or no item; only from calls that do not wait.
/// - timed_out: the deadline passed first.
/// - interrupted: a signal handler ran in the waiting thread.
/// - closed: no more puts; for a get also: and nothing is left inside.
enum class QueueStatus { done, not_now, timed_out, interrupted, closed };

}  // namespace headrace::queues
