// The same ring with its instrumentation, recorded into a run.
#include <memory>

#include "headrace/profile/current.h"
#include "headrace/profile/session.h"
#include "headrace/profile/thread_context.h"
#include "headrace/queues/adaptive_recorder.h"
#include "headrace/queues/mpmc_ring.h"
#include "kinds.h"

namespace {

using namespace headrace::bench;
using headrace::profile::CurrentSession;
using headrace::profile::Session;
using headrace::queues::AdaptiveRecorder;
using headrace::queues::Attempt;
using headrace::queues::MpmcRing;
using headrace::queues::PacedProbe;
using headrace::queues::QueueStatus;
using headrace::queues::Side;

/// A ring and a recorder, each try told to it as BoundedQueue does.
class RecordedRing {
 public:
  explicit RecordedRing(PacedProbe::Limits limits) : recorder_("ring", kCapacity, limits) {
    recorder_.attach(ring_);
  }
  ~RecordedRing() { recorder_.detach(); }

  Attempt try_push(std::uint64_t& item) {
    const Attempt attempt = ring_.try_push(item);
    if (attempt.status == QueueStatus::done) recorder_.moved(Side::put, attempt.number, nullptr);
    return attempt;
  }
  Attempt try_pop(std::optional<std::uint64_t>& out) {
    const Attempt attempt = ring_.try_pop(out);
    if (attempt.status == QueueStatus::done) recorder_.moved(Side::get, attempt.number, nullptr);
    return attempt;
  }

 private:
  MpmcRing<std::uint64_t> ring_{kCapacity};
  AdaptiveRecorder recorder_;
};

/// Whoever records for the first time in a run takes its place there, once, in some milliseconds.
void enter_run() {
  if (headrace::profile::ThreadContext::recording() == nullptr) std::exit(1);
}

/// Runs with a session of its own, and fails where the run was not told of every item.
template <class Body>
Took recorded(std::uint64_t items, Body&& body) {
  const std::shared_ptr<Session> session = Session::open({});
  CurrentSession::push(session);
  const Took took = body();
  const std::uint64_t puts = session->segment().queues()[0].cell.puts.load();
  CurrentSession::pop(*session);
  session->close();
  // Calls in flight while the pace changes may be missed.
  if (puts + 16 < items || puts > items + 16) {
    std::fprintf(stderr, "%llu of %llu items were recorded\n", static_cast<unsigned long long>(puts),
                 static_cast<unsigned long long>(items));
    std::exit(1);
  }
  return took;
}

Run transfer_with(PacedProbe::Limits limits) {
  return [limits](Crowd crowd, std::uint64_t items) {
    return recorded(items, [&] {
      RecordedRing ring(limits);
      return transfer(
          crowd, items, [&](std::uint64_t item) { put_item(ring, item); }, [&] { return get_item(ring); },
          enter_run);
    });
  };
}
Run alone_with(PacedProbe::Limits limits) {
  return [limits](Crowd, std::uint64_t items) {
    return recorded(items, [&] {
      RecordedRing ring(limits);
      enter_run();
      return alone(items, [&](std::uint64_t item) { put_item(ring, item); }, [&] { return get_item(ring); });
    });
  };
}

constexpr PacedProbe::Limits kNeverFast{.fast_items_per_s = 1'000'000'000'000, .slow_items_per_s = 1};

const Entered adaptive("items", "MpmcRing, recorded", transfer_with({}));
const Entered rings("rings", "MpmcRing, recorded", transfer_with({}));
const Entered one_adaptive("one thread", "MpmcRing, recorded", alone_with({}));
const Entered every("items", "MpmcRing, every item stamped", transfer_with(kNeverFast));
const Entered one_every("one thread", "MpmcRing, every item stamped", alone_with(kNeverFast));

}  // namespace
