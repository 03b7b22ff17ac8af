#include "live_run.h"

#include <array>
#include <chrono>

#include "headrace/metrics/operator_probe.h"

namespace headrace::bench {

using metrics::Clock;

LiveRun::LiveRun(bool busy) : session_(profile::Session::open({})) {
  for (int i = 0; i < kOperators; ++i) {
    profile::OperatorSpec spec;
    const std::string name = "operator " + std::to_string(i);
    spec.name = name;
    operators_.push_back(session_->operator_id(spec));
    session_->queue_id("queue " + std::to_string(i), 64);
  }
  session_->loader_id("train", operators_.back());
  session_->loop_began(Clock::now_ns());
  for (int i = 0; i < kWorkers; ++i) threads_.emplace_back([this, busy] { work(busy); });
  while (ready_.load() < kWorkers) std::this_thread::yield();
}

LiveRun::~LiveRun() {
  stop_.store(true);
  for (std::thread& thread : threads_) thread.join();
  session_->close();
}

void LiveRun::work(bool busy) {
  metrics::WorkerCell* cell = session_->claim_worker(Clock::now_ns());
  metrics::WorkerProbe worker;
  worker.bind(cell, session_->segment().cells(), session_->clock(), Clock::now_ns());
  std::array<metrics::OperatorProbe, kOperators> probes;
  for (int i = 0; i < kOperators; ++i) {
    const int id = operators_[static_cast<std::size_t>(i)];
    probes[static_cast<std::size_t>(i)] = {&worker,
                                           session_->claim_cell(*cell, id, metrics::Place::worker, false)};
  }
  const auto call_all = [&] {
    for (auto& probe : probes) const metrics::OperatorProbe::Call call(probe);
    calls_.fetch_add(kOperators, std::memory_order_relaxed);
  };
  call_all();
  ready_.fetch_add(1);
  while (!stop_.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (busy) call_all();
  }
  worker.finish(Clock::now_ns());
}

}  // namespace headrace::bench
