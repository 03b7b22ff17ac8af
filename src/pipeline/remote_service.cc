#include "headrace/pipeline/remote_service.h"

#include <algorithm>

#include "headrace/metrics/clock.h"
#include "headrace/profile/session.h"
#include "headrace/profile/thread_context.h"

namespace headrace::pipeline {

using metrics::Clock;
using profile::ThreadContext;

thread_local RemoteService* RemoteService::current_ = nullptr;

RemoteService::RemoteService(profile::OperatorHandle& op, const StopState& stop) noexcept
    : operator_(op), stop_(stop), outer_(current_) {
  current_ = this;
}

RemoteService::~RemoteService() { current_ = outer_; }

void RemoteService::begin(std::int64_t label) noexcept {
  told_ = false;
  label_ = label;
  entered_ns_ = Clock::now_ns();
  cell_ = nullptr;
  ThreadContext* context = ThreadContext::recording();
  if (context == nullptr) return;
  cell_ = context->cell(operator_.id_in(*context->session()));
  if (cell_ == nullptr) return;
  session_uid_ = context->session()->uid();
  context->probe.enter(*cell_, entered_ns_, label);
}

void RemoteService::tell(std::int64_t began_ns, std::int64_t ended_ns, std::int64_t cpu_ns) noexcept {
  // The two processes' readings are of one clock, but ours may be a calibrated counter beside it.
  const std::int64_t now = Clock::now_ns();
  began_ns_ = std::clamp(began_ns, entered_ns_, now);
  ended_ns_ = std::clamp(ended_ns, began_ns_, now);
  cpu_ns_ = cpu_ns;
  told_ = true;
}

void RemoteService::starting() noexcept {
  if (cell_ == nullptr) return;
  if (metrics::WorkerProbe* probe = ThreadContext::local().open_probe())
    probe->block(metrics::WorkerState::idle, Clock::now_ns());
}

void RemoteService::started() noexcept {
  if (cell_ == nullptr) return;
  entered_ns_ = Clock::now_ns();
  if (metrics::WorkerProbe* probe = ThreadContext::local().open_probe()) probe->unblock(entered_ns_);
}

void RemoteService::end() noexcept {
  if (cell_ == nullptr) return;
  ThreadContext& context = ThreadContext::local();
  metrics::WorkerProbe* probe = context.open_probe();
  // Another session's cells by now, or a forked child's.
  if (probe == nullptr || context.session()->uid() != session_uid_ || probe->depth() == 0) return;
  metrics::OperatorCell& cell = *cell_;
  cell_ = nullptr;
  if (!told_) return probe->abandon(Clock::now_ns());
  probe->withdraw();
  probe->attribute(cell, began_ns_, ended_ns_, cpu_ns_, label_);
}

}  // namespace headrace::pipeline
