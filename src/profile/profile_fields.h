// The fields of a Profile, one list per struct: what writes and reads JSON goes over them, and so does what
// bounds every figure. For the bodies in src/profile.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "headrace/profile/profile.h"

namespace headrace::profile {
/// `T`, const where it is written and mutable where it is read.
template <class T, class Struct>
concept Fields = std::is_same_v<std::remove_const_t<T>, Struct>;

template <class F>
void fields_of(F& field, Fields<Latency> auto& latency) {
  field("count", latency.count);
  field("mean_s", latency.mean_s);
  field("p50_s", latency.p50_s);
  field("p90_s", latency.p90_s);
  field("p99_s", latency.p99_s);
  field("max_s", latency.max_s);
}

template <class F>
void fields_of(F& field, Fields<States> auto& states) {
  field("busy", states.busy);
  field("blocked_in", states.blocked_in);
  field("blocked_out", states.blocked_out);
  field("idle", states.idle);
}

template <class F>
void fields_of(F& field, Fields<ServiceSample> auto& sample) {
  field("index", sample.index);
  field("wall_s", sample.wall_s);
  // Null where it was not taken, as everywhere; the struct says so by a negative number.
  std::optional<double> cpu_s;
  if (sample.cpu_s >= 0) cpu_s = sample.cpu_s;
  field("cpu_s", cpu_s);
  if constexpr (!std::is_const_v<std::remove_reference_t<decltype(sample)>>)
    sample.cpu_s = cpu_s.value_or(-1);
}

template <class F>
void fields_of(F& field, Fields<WorkerProfile> auto& worker) {
  field("name", worker.name);
  field("pid", worker.pid);
  field("tid", worker.tid);
  field("alive", worker.alive);
  field("items", worker.items);
  field("failures", worker.failures);
  field("busy_s", worker.busy_s);
  field("cpu_s", worker.cpu_s);
  field("run_queue_wait_s", worker.run_queue_wait_s);
  field("states", worker.states);
  field("service", worker.service);
  field("sequence", worker.sequence);
  field("slowest", worker.slowest);
  field("worker_id", worker.worker_id);
  field("shard", worker.shard);
}

template <class F>
void fields_of(F& field, Fields<Knob> auto& knob) {
  field("parameter", knob.parameter);
  field("value", knob.value);
  field("min", knob.min);
  field("max", knob.max);
  field("live", knob.live);
  field("sets", knob.sets);
}

template <class F>
void fields_of(F& field, Fields<LoaderParameter> auto& parameter) {
  field("name", parameter.name);
  field("value", parameter.value);
  field("usual", parameter.usual);
  field("choices", parameter.choices);
  field("min", parameter.min);
  field("max", parameter.max);
  field("live", parameter.live);
  field("needs_workers", parameter.needs_workers);
  field("sets", parameter.sets);
  field("set_in", parameter.set_in);
}

template <class F>
void fields_of(F& field, Fields<LoaderStage> auto& stage) {
  field("name", stage.name);
  field("operators", stage.operators);
  field("workers", stage.workers);
  field("runs_in", stage.runs_in);
  field("gets_work", stage.gets_work);
  field("ordered", stage.ordered);
  field("widened_by", stage.widened_by);
}

template <class F>
void fields_of(F& field, Fields<LoaderBuffer> auto& buffer) {
  field("from", buffer.from);
  field("to", buffer.to);
  field("capacity", buffer.capacity);
  field("is_window", buffer.is_window);
  field("per_worker", buffer.per_worker);
  field("set_by", buffer.set_by);
}

template <class F>
void fields_of(F& field, Fields<LoaderDelivery> auto& delivery) {
  field("ordered", delivery.ordered);
  field("draws", delivery.draws);
  field("hands_over", delivery.hands_over);
  field("pins", delivery.pins);
}

template <class F>
void fields_of(F& field, Fields<LoaderModel> auto& model) {
  field("framework", model.framework);
  field("stages", model.stages);
  field("buffers", model.buffers);
  field("delivery", model.delivery);
  field("parameters", model.parameters);
  field("shard_advice", model.shard_advice);
}

template <class F>
void fields_of(F& field, Fields<Transfer> auto& transfer) {
  field("copies", transfer.copies);
  field("bytes", transfer.bytes);
  field("bytes_per_s", transfer.bytes_per_s);
  field("pinned_share", transfer.pinned_share);
  field("copy_s", transfer.copy_s);
  field("buffer_wait_s", transfer.buffer_wait_s);
}

template <class F>
void fields_of(F& field, Fields<FunctionShare> auto& function) {
  field("name", function.name);
  field("share", function.share);
}

template <class F>
void fields_of(F& field, Fields<OperatorProfile> auto& op) {
  field("name", op.name);
  field("kind", op.kind);
  field("workers", op.workers);
  field("items", op.items);
  field("items_per_batch", op.items_per_batch);
  field("busy_s", op.busy_s);
  field("cpu_s", op.cpu_s);
  field("demand_s", op.demand_s);
  field("service", op.service);
  field("states", op.states);
  field("failures", op.failures);
  field("run_queue_wait_s", op.run_queue_wait_s);
  std::optional<int> segment;
  if (op.segment >= 0) segment = op.segment;
  field("segment", segment);
  if constexpr (!std::is_const_v<std::remove_reference_t<decltype(op)>>) op.segment = segment.value_or(-1);
  field("in_sink", op.in_sink);
  field("executor", op.executor);
  field("fidelity", op.fidelity);
  field("transfer", op.transfer);
  field("knobs", op.knobs);
  field("functions", op.functions);
  field("per_worker", op.per_worker);
}

template <class F>
void fields_of(F& field, Fields<QueueProfile> auto& queue) {
  field("name", queue.name);
  field("from", queue.from);
  field("to", queue.to);
  field("capacity", queue.capacity);
  field("unit", queue.unit);
  field("occupancy", queue.occupancy);
  field("levels_per_bin", queue.levels_per_bin);
  field("mean", queue.mean);
  field("empty_share", queue.empty_share);
  field("full_share", queue.full_share);
  field("puts", queue.puts);
  field("gets", queue.gets);
  field("put_wait_s", queue.put_wait_s);
  field("get_wait_s", queue.get_wait_s);
  field("fidelity", queue.fidelity);
  field("knobs", queue.knobs);
}

/// The ledger's operator is null, not "", where the wait is nobody's.
template <class F>
void fields_of(F& field, Fields<LedgerRow> auto& row) {
  field("what", row.what);
  std::optional<std::string> op;
  if (!row.op.empty()) op = row.op;
  field("operator", op);
  if constexpr (!std::is_const_v<std::remove_reference_t<decltype(row)>>) row.op = op.value_or("");
  field("seconds", row.seconds);
  field("share", row.share);
}

template <class F>
void fields_of(F& field, Fields<Stall> auto& stall) {
  field("at_s", stall.at_s);
  field("wait_s", stall.wait_s);
  field("step", stall.step);
}

template <class F>
void fields_of(F& field, Fields<WindowOperator> auto& op) {
  field("busy_share", op.busy_share);
  field("demand_s", op.demand_s);
  field("items", op.items);
}

template <class F>
void fields_of(F& field, Fields<WindowQueue> auto& queue) {
  field("mean", queue.mean);
  field("empty_share", queue.empty_share);
  field("full_share", queue.full_share);
}

template <class F>
void fields_of(F& field, Fields<WindowHost> auto& host) {
  field("cpu_share", host.cpu_share);
  field("foreign_cpu_share", host.foreign_cpu_share);
  field("throttled_share", host.throttled_share);
}

template <class F>
void fields_of(F& field, Fields<Window> auto& window) {
  field("start_s", window.start_s);
  field("end_s", window.end_s);
  field("steps", window.steps);
  field("wait_s", window.wait_s);
  field("starved_s", window.starved_s);
  field("compute_s", window.compute_s);
  field("operators", window.operators);
  field("queues", window.queues);
  field("host", window.host);
}

template <class F>
void fields_of(F& field, Fields<Startup> auto& startup) {
  field("first_batch_s", startup.first_batch_s);
  field("worker_start_s", startup.worker_start_s);
  field("later_epochs_s", startup.later_epochs_s);
}

template <class F>
void fields_of(F& field, Fields<StepSample> auto& step) {
  field("wait_s", step.wait_s);
  field("compute_s", step.compute_s);
  field("before_forward_s", step.before_forward_s);
  field("tail_s", step.tail_s);
}

template <class F>
void fields_of(F& field, Fields<MarkedSteps> auto& marked) {
  field("steps", marked.steps);
  field("of_steps", marked.of_steps);
  field("tail_steps", marked.tail_steps);
  field("iteration_gap_s", marked.iteration_gap_s);
  field("forward_backward_s", marked.forward_backward_s);
  field("tail_s", marked.tail_s);
}

template <class F>
void fields_of(F& field, Fields<SinkProfile> auto& sink) {
  field("steps", sink.steps);
  field("step_s", sink.step_s);
  field("compute_s", sink.compute_s);
  field("compute_cpu_s", sink.compute_cpu_s);
  field("quiet_compute_s", sink.quiet_compute_s);
  field("quiet_steps", sink.quiet_steps);
  field("batch_bytes", sink.batch_bytes);
  field("getnext_wait", sink.getnext_wait);
  field("wait_share", sink.wait_share);
  field("worker_start_wait_s", sink.worker_start_wait_s);
  field("starved_share", sink.starved_share);
  field("handoff_floor_s", sink.handoff_floor_s);
  field("ready_share", sink.ready_share);
  field("longest_waits", sink.longest_waits);
  field("sequence", sink.sequence);
  field("marked", sink.marked);
}

template <class F>
void fields_of(F& field, Fields<Host> auto& host) {
  field("cores", host.cores);
  field("cpu_share", host.cpu_share);
  field("process_cpu_cores", host.process_cpu_cores);
  field("foreign_cpu_share", host.foreign_cpu_share);
  field("foreign_contention_share", host.foreign_contention_share);
  field("throttled_share", host.throttled_share);
  field("run_queue_wait_share", host.run_queue_wait_share);
  field("io_pressure_share", host.io_pressure_share);
  field("gil_share", host.gil_share);
  field("memory", host.memory);
}

template <class F>
void fields_of(F& field, Fields<Handoff> auto& handoff) {
  field("batches", handoff.batches);
  field("message_bytes", handoff.message_bytes);
  field("tensors", handoff.tensors);
  field("pickle_s", handoff.pickle_s);
  field("pickle_cpu_s", handoff.pickle_cpu_s);
  field("send_s", handoff.send_s);
  field("receive_s", handoff.receive_s);
  field("receive_cpu_s", handoff.receive_cpu_s);
  field("unused_batches", handoff.unused_batches);
}

template <class F>
void fields_of(F& field, Fields<HandoffEstimate> auto& estimate) {
  field("message_bytes", estimate.message_bytes);
  field("tensors", estimate.tensors);
  field("pickle_cpu_s", estimate.pickle_cpu_s);
}

template <class F>
void fields_of(F& field, Fields<RankFigures> auto& figures) {
  field("rank", figures.rank);
  field("steps", figures.steps);
  field("step_s", figures.step_s);
  field("compute_s", figures.compute_s);
  field("wait_share", figures.wait_share);
  field("starved_share", figures.starved_share);
  field("demand_s", figures.demand_s);
  field("operator", figures.op);
}

template <class F>
void fields_of(F& field, Fields<DeviceIdleCause> auto& cause) {
  field("cause", cause.cause);
  field("idle_s", cause.idle_s);
}

template <class F>
void fields_of(F& field, Fields<DeviceStep> auto& step) {
  field("step", step.step);
  field("iteration_gap_s", step.iteration_gap_s);
  field("forward_backward_s", step.forward_backward_s);
  field("tail_s", step.tail_s);
  field("total_s", step.total_s);
  field("communication_s", step.communication_s);
  field("communication_overlap_s", step.communication_overlap_s);
}

template <class F>
void fields_of(F& field, Fields<DeviceSteps> auto& steps) {
  field("steps", steps.steps);
  field("of_steps", steps.of_steps);
  field("tail_steps", steps.tail_steps);
  field("iteration_gap_s", steps.iteration_gap_s);
  field("forward_backward_s", steps.forward_backward_s);
  field("tail_s", steps.tail_s);
  field("communication_s", steps.communication_s);
  field("communication_overlap_s", steps.communication_overlap_s);
  field("fp_point", steps.fp_point);
  field("bp_point", steps.bp_point);
  field("sequence", steps.sequence);
}

template <class F>
void fields_of(F& field, Fields<DeviceProfile> auto& device) {
  field("window_s", device.window_s);
  field("idle_s", device.idle_s);
  field("causes", device.causes);
  field("waits_from", device.waits_from);
  field("clock_error_s", device.clock_error_s);
  field("rank", device.rank);
  field("steps", device.steps);
  field("step_notes", device.step_notes);
}

/// A list of parameters is one object in JSON: settings["batch_size"] is how they are looked up.
template <class F, class Settings>
void settings_as_object(F& field, Settings& settings) {
  std::map<std::string, std::string> values;
  for (const Setting& setting : settings) values[setting.parameter] = setting.value;
  field("settings", values);
  if constexpr (!std::is_const_v<Settings>) {
    settings.clear();
    for (auto& [parameter, value] : values) settings.push_back({parameter, std::move(value)});
  }
}

template <class F>
void fields_of(F& field, Fields<Profile> auto& profile) {
  field("loader", profile.loader);
  settings_as_object(field, profile.settings);
  field("model", profile.model);
  field("rank", profile.rank);
  field("elapsed_s", profile.elapsed_s);
  field("epochs", profile.epochs);
  field("startup", profile.startup);
  field("sink", profile.sink);
  field("operators", profile.operators);
  field("queues", profile.queues);
  field("stall_ledger", profile.stall_ledger);
  field("handoff", profile.handoff);
  field("handoff_estimate", profile.handoff_estimate);
  field("windows", profile.windows);
  field("ranks", profile.ranks);
  field("host", profile.host);
  field("device", profile.device);
  field("finished", profile.finished);
  field("notes", profile.notes);
}

}  // namespace headrace::profile
