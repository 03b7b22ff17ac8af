#include "profile/snapshot_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "profile/totals.h"

namespace headrace::profile {
namespace {

std::optional<MarkedSteps> marked_steps(const SinkFigures& sink) {
  if (sink.marked_steps <= 0) return std::nullopt;
  const auto mean_s = [&](double total_ns) { return total_ns / sink.marked_steps * kSecond; };
  return MarkedSteps{
      static_cast<std::uint64_t>(sink.marked_steps), static_cast<std::uint64_t>(sink.whole_steps),
      static_cast<std::uint64_t>(sink.tail_steps),   mean_s(sink.marked_gap_ns),
      mean_s(sink.marked_forward_backward_ns),       mean_s(sink.marked_tail_ns)};
}

std::vector<Stall> longest_waits(const metrics::SinkCell& cell, std::int64_t since_ns) {
  std::vector<Stall> longest;
  for (const metrics::LongestWait& wait : cell.longest) {
    const std::int64_t at = wait.at_ns.load() - since_ns;
    if (wait.wait_ns.load() <= 0 || at < 0) continue;
    longest.push_back({static_cast<double>(at) * kSecond, static_cast<double>(wait.wait_ns.load()) * kSecond,
                       wait.step.load()});
  }
  std::sort(longest.begin(), longest.end(),
            [](const Stall& a, const Stall& b) { return a.wait_s > b.wait_s; });
  return longest;
}

std::vector<StepSample> step_sequence(const metrics::SinkCell& cell, const SinkFigures& sink) {
  std::vector<StepSample> sequence;
  const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(0, cell.computes.load()));
  const auto wanted = std::min<std::uint64_t>(static_cast<std::uint64_t>(sink.computes), count);
  const std::uint64_t first = count - std::min<std::uint64_t>(wanted, metrics::SinkCell::kSequence);
  for (std::uint64_t i = first; i < count; ++i) {
    const auto& step = cell.sequence[i % metrics::SinkCell::kSequence];
    const double wait = step.wait_ns.load();
    const double compute = step.compute_ns.load();
    if (!std::isfinite(wait) || !std::isfinite(compute) || wait < 0 || compute < 0) continue;
    StepSample sample{wait * kSecond, compute * kSecond};
    if (const double cpu = step.cpu.of(compute); cpu >= 0) sample.cpu_s = cpu * kSecond;
    const double before = step.before_forward.of(compute);
    const double tail = step.tail.of(compute);
    if (before >= 0) {
      sample.before_forward_s = before * kSecond;
      if (tail >= 0) sample.tail_s = std::min(tail, compute - before) * kSecond;
    }
    sequence.push_back(sample);
  }
  return sequence;
}

}  // namespace

SinkProfile sink_of(const LoaderRecord& record, const SegmentFigures& figures, std::int64_t since_ns) {
  const SinkFigures& sink = figures.sink;
  SinkProfile out;
  const double elapsed = sink.wait_ns + sink.compute_ns;
  out.steps = sink.steps;
  out.compute_s = sink.computes > 0 ? sink.compute_ns / sink.computes * kSecond : 0;
  const double wait_s = sink.waits > 0 ? sink.wait_ns / sink.waits * kSecond : sink.wait_ns * kSecond;
  out.step_s = wait_s + out.compute_s;
  if (sink.sampled_compute_ns > 0) {
    out.compute_cpu_s = out.compute_s * share(sink.sampled_compute_cpu_ns, sink.sampled_compute_ns);
  }
  if (sink.samples >= kMinSamples) {
    out.compute_lock_wait_s = out.compute_s * share(sink.lock_samples, sink.samples);
    if (sink.holder_samples >= kMinSamples)
      out.compute_lock_held_s = out.compute_s * share(sink.held_samples, sink.holder_samples);
    const double ready_s = out.compute_s * share(sink.running_samples, sink.samples);
    if (out.compute_cpu_s) out.compute_core_wait_s = std::max(0.0, ready_s - *out.compute_cpu_s);
  }
  const std::uint32_t thread = record.sink.worker.load();
  for (const WorkerFigures& worker : figures.workers) {
    if (worker.index + 1 == thread && sink.computes > 0) out.gc_s = worker.gc_ns * kSecond / sink.computes;
  }
  if (sink.quiet_steps > 0) out.quiet_compute_s = sink.quiet_compute_ns / sink.quiet_steps * kSecond;
  out.quiet_steps = static_cast<std::uint64_t>(sink.quiet_steps);
  if (sink.device_steps > 0) {
    out.device_span_s = sink.device_ns / sink.device_steps * kSecond;
    out.device_host_s = sink.device_host_ns / sink.device_steps * kSecond;
  }
  out.device_steps = static_cast<std::uint64_t>(sink.device_steps);
  if (const std::uint64_t bytes = record.batch_bytes.load(); bytes > 0) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
    out.batch_bytes = static_cast<std::int64_t>(std::min(bytes, kMax));
  }
  if (const std::uint64_t ns = record.ceiling_ns.load(); ns > 0 && ns <= static_cast<std::uint64_t>(kMaxNs))
    out.ceiling_step_s = static_cast<double>(ns) * kSecond;
  out.getnext_wait = sink.wait.latency();
  out.wait_share = share(sink.wait_ns, elapsed);
  out.worker_start_wait_s = sink.worker_start_ns * kSecond;
  out.starved_share = share(sink.starved_ns, elapsed);
  out.handoff_floor_s = sink.ready_calls > 0 ? sink.ready_wait_ns / sink.ready_calls * kSecond : 0;
  out.ready_share = share(sink.ready_calls, sink.waits);
  out.longest_waits = longest_waits(record.sink, since_ns);
  out.sequence = step_sequence(record.sink, sink);
  out.marked = marked_steps(sink);
  return out;
}

std::vector<LedgerRow> stall_ledger_of(const LoaderRecord& record, const SegmentFigures& figures,
                                       const Graph& graph) {
  const SinkFigures& sink = figures.sink;
  const bool followed = record.has_own_graph.load() == static_cast<std::uint32_t>(LoaderGraph::window) &&
                        record.workers.load() > 0;
  std::vector<LedgerRow> rows;
  std::vector<double> in_service(graph.nodes.size(), 0);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    if (!node.in_sink) continue;
    for (const std::uint32_t cell : node.cells) in_service[i] += figures.cells[cell].busy_ns;
    if (node.is_source_object) in_service[i] = std::max(0.0, in_service[i] - sink.redirected_ns);
  }
  double unknown = sink.ledger_unknown_ns;
  std::vector<double> ordered(graph.nodes.size(), 0);
  std::vector<double> waiting(graph.nodes.size(), 0);
  const auto charge = [&](const auto& ledger, std::vector<double>& to) {
    for (std::size_t op = 0; op < ledger.size(); ++op) {
      const int node = graph.node_of_operator[op];
      (node >= 0 ? to[static_cast<std::size_t>(node)] : unknown) += ledger[op];
    }
  };
  charge(sink.ledger_ns, in_service);
  charge(sink.ledger_order_ns, ordered);
  charge(sink.ledger_waiting_ns, waiting);
  const double handed = sink.ready_wait_ns + sink.ledger_handoff_ns;
  double sum = handed + unknown;
  for (const auto* part : {&in_service, &ordered, &waiting}) {
    for (const double one : *part) sum += one;
  }
  // GetNext calls that brought no batch are in the operators' time but not in the wait: scale them out.
  const double scale = sum > sink.wait_ns && sum > 0 ? sink.wait_ns / sum : 1;
  if (scale == 1) unknown += sink.wait_ns - sum;
  const auto row = [&](WaitReason what, const std::string& op, double ns) {
    if (ns <= 0) return;
    rows.push_back({what, op, ns * scale * kSecond, share(ns * scale, sink.wait_ns)});
  };
  for (std::size_t i = 0; i < in_service.size(); ++i) {
    row(WaitReason::in_service, graph.nodes[i].name, in_service[i]);
    row(WaitReason::order, graph.nodes[i].name, ordered[i]);
    row(WaitReason::waiting_for_worker, graph.nodes[i].name, waiting[i]);
  }
  row(WaitReason::handoff, followed ? "handoff" : "", handed);
  row(WaitReason::unknown, "", unknown);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const LedgerRow& a, const LedgerRow& b) { return a.seconds > b.seconds; });
  return rows;
}

}  // namespace headrace::profile
