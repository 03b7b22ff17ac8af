#include "headrace/profile/worker_pauses.h"

#include <algorithm>
#include <cstdint>

#include "headrace/metrics/clock.h"
#include "headrace/profile/thread_context.h"

namespace headrace::profile {
namespace {

constexpr std::int64_t kNone = -1;
thread_local std::int64_t collects_since = kNone;  // loop time

/// Loop time, or kNone where no loop has begun.
std::int64_t loop_now(const ThreadContext& context) noexcept {
  const auto reading = context.session()->clock()->read(metrics::Clock::now_ns());
  return reading.begun ? reading.loop_ns : kNone;
}

}  // namespace

void collection_began() noexcept {
  ThreadContext& context = ThreadContext::local();
  collects_since = context.open_probe() == nullptr ? kNone : loop_now(context);
}

void collection_ended() noexcept {
  ThreadContext& context = ThreadContext::local();
  metrics::WorkerProbe* probe = context.open_probe();
  if (collects_since == kNone || probe == nullptr) return;
  probe->cell()->gc_ns.bump(std::max<std::int64_t>(0, loop_now(context) - collects_since));
  collects_since = kNone;
}

void ran_out_of_data() noexcept {
  ThreadContext& context = ThreadContext::local();
  metrics::WorkerProbe* probe = context.open_probe();
  if (probe == nullptr || probe->cell()->out_of_data_since_ns.load() != 0) return;
  const std::int64_t now = loop_now(context);
  if (now != kNone) probe->cell()->out_of_data_since_ns.store(1 + now);
}

void has_data_again() noexcept {
  ThreadContext& context = ThreadContext::local();
  metrics::WorkerProbe* probe = context.open_probe();
  if (probe == nullptr) return;
  const std::int64_t since = probe->cell()->out_of_data_since_ns.load();
  if (since == 0) return;
  probe->cell()->out_of_data_ns.bump(std::max<std::int64_t>(0, loop_now(context) - since));
  probe->cell()->out_of_data_since_ns.store(0);
}

}  // namespace headrace::profile
