#include "headrace/profile/overlapping_calls.h"

#include "headrace/profile/current.h"
#include "headrace/profile/process_identity.h"

namespace headrace::profile {
namespace {

constexpr std::size_t kMaxLanes = 64;

}  // namespace

OverlappingCalls::~OverlappingCalls() {
  if (pid_ != current_pid()) return;
  for (const auto& lane : lanes_) lane->probe.finish(metrics::Clock::now_ns());
}

void OverlappingCalls::follow_session() noexcept {
  std::shared_ptr<Session> current = CurrentSession::get();
  if (current == session_ && pid_ == current_pid()) return;
  if (pid_ == current_pid()) {
    for (const auto& lane : lanes_) lane->probe.finish(metrics::Clock::now_ns());
  }
  lanes_.clear();
  session_ = std::move(current);
  pid_ = current_pid();
}

OverlappingCalls::Lane* OverlappingCalls::free_lane(std::int64_t began_ns) {
  for (const auto& lane : lanes_) {
    if (lane->busy_until_ns <= began_ns) return lane.get();
  }
  if (lanes_.size() == kMaxLanes) return nullptr;
  metrics::WorkerCell* worker = session_->claim_worker(began_ns);
  if (worker == nullptr) return nullptr;
  // The kernel has no figures of it.
  worker->tid.store(0);
  auto lane = std::make_unique<Lane>();
  lane->probe.bind(worker, session_->segment().cells(), session_->clock(), began_ns);
  lane->cell = session_->claim_cell(*worker, op_->id_in(*session_), metrics::Place::worker, false);
  lanes_.push_back(std::move(lane));
  return lanes_.back().get();
}

void OverlappingCalls::done(std::int64_t began_ns, bool failed) noexcept try {
  follow_session();
  if (session_ == nullptr) return;
  Lane* lane = free_lane(began_ns);
  if (lane == nullptr || lane->cell == nullptr) return;
  const std::int64_t now = metrics::Clock::now_ns();
  lane->probe.attribute(*lane->cell, began_ns, now, -1, -1, failed);
  lane->busy_until_ns = now;
} catch (...) {
  // No memory for a worker more: this call is not recorded.
}

}  // namespace headrace::profile
