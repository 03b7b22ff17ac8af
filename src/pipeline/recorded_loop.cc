#include "headrace/pipeline/recorded_loop.h"

#include <utility>

#include "headrace/metrics/clock.h"

namespace headrace::pipeline {

using metrics::WorkerState;

thread_local RecordedLoop* RecordedLoop::here_ = nullptr;

RecordedLoop::RecordedLoop(std::shared_ptr<profile::OperatorHandle> op, const StopState& stop,
                           profile::OperatorHandle* body) noexcept
    : operator_(std::move(op)), stop_(stop), body_(body) {
  here_ = this;
  rest();
}

void RecordedLoop::rest() noexcept {
  profile::ThreadContext* context = profile::ThreadContext::recording();
  if (context == nullptr) return;
  metrics::OperatorCell* cell = context->cell(operator_->id_in(*context->session()), true);
  context->probe.rest_in(cell, WorkerState::idle, metrics::Clock::now_ns());
  context->probe.announce_puts();
}

RecordedLoop::~RecordedLoop() {
  here_ = nullptr;
  if (metrics::WorkerProbe* probe = profile::ThreadContext::local().open_probe())
    probe->rest_in(nullptr, WorkerState::idle, metrics::Clock::now_ns());
}

void RecordedLoop::failed() noexcept {
  if (body_ != nullptr) {
    profile::ThreadContext* context = profile::ThreadContext::recording();
    if (context == nullptr) return;
    metrics::OperatorCell* cell = context->cell(body_->id_in(*context->session()));
    if (cell != nullptr) cell->failures.bump(1);
    return;
  }
  if (metrics::WorkerProbe* probe = profile::ThreadContext::local().open_probe()) probe->loop_item_failed();
}

}  // namespace headrace::pipeline
