#include "headrace/analysis/diagnosis/plausible.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace headrace::analysis {
namespace {

constexpr double kLongest_s = 3.2e10;  // a thousand years
constexpr int kMost = 1'000'000;

void amount(double& value, double most = 1e15) {
  value = std::isfinite(value) ? std::clamp(value, 0.0, most) : 0;
}
void seconds(double& value) { amount(value, kLongest_s); }
void share(double& value) { amount(value, 1); }

void each(std::optional<double>& value, void (*bound)(double&)) {
  if (!value) return;
  if (!std::isfinite(*value) || *value < 0) {
    value.reset();
  } else {
    bound(*value);
  }
}

void latency(profile::Latency& latency) {
  for (double* value : {&latency.mean_s, &latency.p50_s, &latency.p90_s, &latency.p99_s, &latency.max_s}) {
    seconds(*value);
  }
}

void states(profile::States& states) {
  for (double* value : {&states.busy, &states.blocked_in, &states.blocked_out, &states.idle}) share(*value);
}

void worker(profile::WorkerProfile& worker) {
  seconds(worker.busy_s);
  each(worker.cpu_s, seconds);
  each(worker.run_queue_wait_s, seconds);
  states(worker.states);
  latency(worker.service);
  for (auto* samples : {&worker.sequence, &worker.slowest}) {
    for (profile::ServiceSample& sample : *samples) {
      seconds(sample.wall_s);
      if (!std::isfinite(sample.cpu_s)) sample.cpu_s = -1;
    }
  }
}

void transfer(profile::Transfer& transfer) {
  each(transfer.bytes_per_s, [](double& rate) { amount(rate); });
  each(transfer.pinned_share, share);
  seconds(transfer.copy_s);
  seconds(transfer.buffer_wait_s);
}

void op(profile::OperatorProfile& op) {
  op.workers = std::clamp(op.workers, 1, kMost);
  amount(op.items_per_batch);
  seconds(op.busy_s);
  each(op.cpu_s, seconds);
  seconds(op.demand_s);
  latency(op.service);
  states(op.states);
  each(op.run_queue_wait_s, seconds);
  if (op.transfer) transfer(*op.transfer);
  for (profile::Knob& knob : op.knobs) amount(knob.value);
  for (profile::WorkerProfile& each_worker : op.per_worker) worker(each_worker);
}

void queue(profile::QueueProfile& queue) {
  queue.capacity = std::max<std::int64_t>(queue.capacity, 0);
  for (double& level : queue.occupancy) share(level);
  amount(queue.mean);
  share(queue.empty_share);
  share(queue.full_share);
  seconds(queue.put_wait_s);
  seconds(queue.get_wait_s);
  for (profile::Knob& knob : queue.knobs) amount(knob.value);
}

void sink(profile::SinkProfile& sink) {
  seconds(sink.step_s);
  seconds(sink.compute_s);
  each(sink.compute_cpu_s, seconds);
  each(sink.quiet_compute_s, seconds);
  latency(sink.getnext_wait);
  share(sink.wait_share);
  share(sink.starved_share);
  seconds(sink.worker_start_wait_s);
  sink.starved_share = std::min(sink.starved_share, sink.wait_share);
  seconds(sink.handoff_floor_s);
  share(sink.ready_share);
  for (profile::Stall& stall : sink.longest_waits) {
    seconds(stall.at_s);
    seconds(stall.wait_s);
  }
  for (profile::StepSample& step : sink.sequence) {
    seconds(step.wait_s);
    seconds(step.compute_s);
    each(step.before_forward_s, seconds);
    each(step.tail_s, seconds);
  }
  if (!sink.marked) return;
  for (double* value :
       {&sink.marked->iteration_gap_s, &sink.marked->forward_backward_s, &sink.marked->tail_s}) {
    seconds(*value);
  }
}

void handoff(profile::Handoff& handoff) {
  amount(handoff.message_bytes);
  amount(handoff.tensors);
  for (double* value : {&handoff.pickle_s, &handoff.pickle_cpu_s, &handoff.send_s, &handoff.receive_s,
                        &handoff.receive_cpu_s}) {
    seconds(*value);
  }
}

void window(profile::Window& window, std::size_t operators, std::size_t queues) {
  for (double* value :
       {&window.start_s, &window.end_s, &window.wait_s, &window.starved_s, &window.compute_s}) {
    seconds(*value);
  }
  window.end_s = std::max(window.end_s, window.start_s);
  window.starved_s = std::min(window.starved_s, window.wait_s);
  window.operators.resize(operators);
  window.queues.resize(queues);
  for (profile::WindowOperator& each_op : window.operators) {
    share(each_op.busy_share);
    seconds(each_op.demand_s);
  }
  for (profile::WindowQueue& each_queue : window.queues) amount(each_queue.mean);
}

void host(profile::Host& host) {
  host.cores = std::clamp(host.cores, 0, kMost);
  for (auto* value :
       {&host.cpu_share, &host.foreign_cpu_share, &host.foreign_contention_share, &host.throttled_share,
        &host.run_queue_wait_share, &host.io_pressure_share, &host.gil_share}) {
    each(*value, share);
  }
  each(host.process_cpu_cores, [](double& value) { amount(value, kMost); });
}

}  // namespace

profile::Profile plausible(const profile::Profile& recorded) {
  profile::Profile profile = recorded;
  seconds(profile.elapsed_s);
  for (double* value :
       {&profile.startup.first_batch_s, &profile.startup.worker_start_s, &profile.startup.later_epochs_s}) {
    seconds(*value);
  }
  sink(profile.sink);
  for (profile::OperatorProfile& each_op : profile.operators) op(each_op);
  for (profile::QueueProfile& each_queue : profile.queues) queue(each_queue);
  for (profile::LedgerRow& row : profile.stall_ledger) {
    seconds(row.seconds);
    share(row.share);
  }
  if (profile.handoff) handoff(*profile.handoff);
  // A window list longer than any recorder makes would cost memory when it is padded.
  constexpr std::size_t kMostWindows = 4096;
  if (profile.windows.size() > kMostWindows) profile.windows.resize(kMostWindows);
  for (profile::Window& each_window : profile.windows) {
    window(each_window, profile.operators.size(), profile.queues.size());
  }
  for (profile::RankFigures& figures : profile.ranks) {
    for (double* value : {&figures.step_s, &figures.compute_s, &figures.demand_s}) seconds(*value);
    share(figures.wait_share);
    share(figures.starved_share);
  }
  host(profile.host);
  return profile;
}

}  // namespace headrace::analysis
