// The training loop of a profile: its steps, its waits, and what they were spent on. Declared as figure.h
// says; part of profile.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/profile/figure.h"
#include "headrace/profile/latency.h"
#include "headrace/profile/word.h"

namespace headrace::profile {

/// Why the awaited batch was not there.
enum class WaitReason : std::uint8_t { in_service, waiting_for_worker, order, handoff, unknown };

constexpr std::array<std::string_view, 5> names_of(WaitReason) noexcept {
  return {"in_service", "waiting_for_worker", "order", "handoff", "unknown"};
}

struct LedgerRow {
  Word<WaitReason> what;
  std::string op;
  double seconds = 0;
  double share = 0;
};

constexpr About about(Of<LedgerRow>) {
  return {
      "LedgerRow",
      "What the awaited batch was doing while the training loop waited. The rows sum to the GetNext wait."};
}
template <class Visit>
constexpr void figures_of(Of<LedgerRow>, Visit&& figure) {
  figure("what", &LedgerRow::what,
         {"`in_service`: it was being made. `waiting_for_worker`: its worker was still at an earlier batch. "
          "`order`: younger batches were ready, it was not. `handoff`: it was finished and on its way. "
          "`unknown`: not seen; above half, the ledger has no say."});
  figure("operator", &LedgerRow::op,
         {"Where; null where no operator can be named.", nullptr, Null::when_unset});
  figure("seconds", &LedgerRow::seconds, {"Time waited.", &kSeconds});
  figure("share", &LedgerRow::share, {"Part of the GetNext wait."});
}

struct Stall {
  double at_s = 0;
  double wait_s = 0;
  std::uint64_t step = 0;
};

constexpr About about(Of<Stall>) { return {"Stall", "One long wait of the training loop."}; }
template <class Visit>
constexpr void figures_of(Of<Stall>, Visit&& figure) {
  figure("at_s", &Stall::at_s, {"When, since the loop began, start-up excluded."});
  figure("wait_s", &Stall::wait_s, {"How long."});
  figure("step", &Stall::step, {"Number of the batch.", &kName});
}

struct Startup {
  double first_batch_s = 0;
  double worker_start_s = 0;
  double later_epochs_s = 0;
};

constexpr About about(Of<Startup>) {
  return {"Startup",
          "Waits for the first batches of epochs, which are kept out of everything else. Tenths of a second "
          "for forked workers, seconds where workers import much."};
}
template <class Visit>
constexpr void figures_of(Of<Startup>, Visit&& figure) {
  figure("first_batch_s", &Startup::first_batch_s, {"From iter() to the first batch of the first epoch."});
  figure("worker_start_s", &Startup::worker_start_s,
         {"The part of it until the first worker began its first item; 0 where there is none."});
  figure("later_epochs_s", &Startup::later_epochs_s, {"First batches of the later epochs, summed."});
}

struct StepSample {
  double wait_s = 0;
  double compute_s = 0;
  std::optional<double> cpu_s = std::nullopt;
  std::optional<double> before_forward_s = std::nullopt;
  std::optional<double> tail_s = std::nullopt;
};

constexpr About about(Of<StepSample>) { return {"StepSample", "One step of the training loop."}; }
template <class Visit>
constexpr void figures_of(Of<StepSample>, Visit&& figure) {
  figure("wait_s", &StepSample::wait_s, {"Its GetNext wait."});
  figure("compute_s", &StepSample::compute_s, {"Time until the next GetNext."});
  figure("cpu_s", &StepSample::cpu_s,
         {"CPU time of that in the loop's own thread; null where it was not read."});
  figure("before_forward_s", &StepSample::before_forward_s,
         {"The part of the compute until forward began; null where no hook marked it."});
  figure("tail_s", &StepSample::tail_s,
         {"The part of the compute from the end of backward on; null where no hook marked it."});
}

struct MarkedSteps {
  std::uint64_t steps = 0;
  std::uint64_t of_steps = 0;
  std::uint64_t tail_steps = 0;
  double iteration_gap_s = 0;
  double forward_backward_s = 0;
  double tail_s = 0;
};

constexpr About about(Of<MarkedSteps>) {
  return {"MarkedSteps",
          "Steps cut where `hr.trace_steps` or `hr.step` marked forward and backward (steps.md). Times are "
          "the host's, means over `steps`."};
}
template <class Visit>
constexpr void figures_of(Of<MarkedSteps>, Visit&& figure) {
  figure("steps", &MarkedSteps::steps, {"Steps in which the beginning of forward was marked."});
  figure("of_steps", &MarkedSteps::of_steps, {"Steps with a steady wait; first steps of epochs have none."});
  figure("tail_steps", &MarkedSteps::tail_steps,
         {"Those of `steps` in which the end of backward was marked too."});
  figure("iteration_gap_s", &MarkedSteps::iteration_gap_s, {"From the end of a step to the next forward."});
  figure("forward_backward_s", &MarkedSteps::forward_backward_s,
         {"Forward and backward, with the tail of steps whose end of backward is unknown."});
  figure("tail_s", &MarkedSteps::tail_s,
         {"From the end of backward to the next GetNext; 0 in steps whose end of backward is unknown."});
}

struct SinkProfile {
  std::uint64_t steps = 0;
  double step_s = 0;
  double compute_s = 0;
  std::optional<double> compute_cpu_s;
  std::optional<double> compute_lock_wait_s = std::nullopt;
  std::optional<double> compute_lock_held_s = std::nullopt;
  std::optional<double> compute_core_wait_s = std::nullopt;
  double gc_s = 0;
  std::optional<double> quiet_compute_s;
  std::uint64_t quiet_steps = 0;
  std::optional<double> device_span_s = std::nullopt;
  std::optional<double> device_host_s = std::nullopt;
  std::uint64_t device_steps = 0;
  std::optional<std::int64_t> batch_bytes;
  std::optional<double> ceiling_step_s = std::nullopt;
  Latency getnext_wait;
  double wait_share = 0;
  double worker_start_wait_s = 0;
  double starved_share = 0;
  double handoff_floor_s = 0;
  double ready_share = 0;
  std::optional<double> wait_resolution_s = std::nullopt;
  std::vector<Stall> longest_waits;
  std::vector<StepSample> sequence;
  std::optional<MarkedSteps> marked = std::nullopt;
};

constexpr About about(Of<SinkProfile>) { return {"Sink", "The training loop: what calls GetNext."}; }
template <class Visit>
constexpr void figures_of(Of<SinkProfile>, Visit&& figure) {
  figure("steps", &SinkProfile::steps, {"Batches yielded, first ones included."});
  figure("step_s", &SinkProfile::step_s, {"Mean of a steady step: GetNext wait + compute."});
  figure("compute_s", &SinkProfile::compute_s, {"Mean time between two GetNext calls."});
  figure("compute_cpu_s", &SinkProfile::compute_cpu_s,
         {"CPU time of that in the loop's own thread. Far below `compute_s`: the step sleeps or waits for a "
          "device."});
  figure("compute_lock_wait_s", &SinkProfile::compute_lock_wait_s,
         {"The part of `compute_s` in which the loop's thread waited for the interpreter lock, from 50 "
          "samples a "
          "second. A tenth of the step or more: threads of the input slow the step down. Null without "
          "samples."});
  figure("compute_lock_held_s", &SinkProfile::compute_lock_held_s,
         {"The part of `compute_s` in which the loop's thread held the interpreter lock, from these samples. "
          "Null where nothing "
          "tells who holds the lock."});
  figure("compute_core_wait_s", &SinkProfile::compute_core_wait_s,
         {"The part of `compute_s` in which the loop's thread was ready to run without a core, from samples "
          "and CPU "
          "time. Many busy workers or threads on few cores slow the step down like that."});
  figure("gc_s", &SinkProfile::gc_s,
         {"Mean time per step of the loop's thread in Python's garbage collector."});
  figure(
      "quiet_compute_s", &SinkProfile::quiet_compute_s,
      {"Mean compute of steps with no busy worker. Well below `compute_s`: the workers slow the step down."});
  figure("quiet_steps", &SinkProfile::quiet_steps, {"How many such steps there were."});
  figure(
      "device_span_s", &SinkProfile::device_span_s,
      {"How long the device works on a step, on its own clock, from marks in its queue at both ends of some "
       "steps. Null where no asynchronous device is in use."});
  figure("device_host_s", &SinkProfile::device_host_s,
         {"Compute of the same steps on the host. Far below `device_span_s`: the host runs ahead, and the "
          "device works on while the loop waits."});
  figure("device_steps", &SinkProfile::device_steps, {"How many steps were marked like that."});
  figure("batch_bytes", &SinkProfile::batch_bytes,
         {"Memory of the largest batch looked at (the 1st, 2nd, 4th, ...); null where it holds no tensors or "
          "arrays."});
  figure(
      "ceiling_step_s", &SinkProfile::ceiling_step_s,
      {"A step over batches that were kept in memory, measured by `headrace run --ceiling`: what the fastest "
       "input would give. Null where it was not measured."});
  figure("getnext_wait", &SinkProfile::getnext_wait,
         {"Steady waits. A median near 0 beside a large mean: few long waits, as in `slow_samples`."});
  figure("wait_share", &SinkProfile::wait_share,
         {"GetNext wait / time. Near 0 the input is free; at 0.5 half of the device's time may go into "
          "waiting."});
  figure(
      "worker_start_wait_s", &SinkProfile::worker_start_wait_s,
      {"The part of the starved time spent waiting for the first batch that a worker made at all, while it "
       "started. The gate leaves it out."});
  figure("starved_share", &SinkProfile::starved_share,
         {"Part of `wait_share` in which no batch was there. Under 0.05: healthy."});
  figure("handoff_floor_s", &SinkProfile::handoff_floor_s,
         {"Mean wait when the batch was ready: microseconds between threads, 1 to 2 ms from loader's "
          "workers."});
  figure("ready_share", &SinkProfile::ready_share,
         {"GetNext calls that found their batch ready / calls. Near 0 starving; near 1 healthy, or "
          "`handoff`, or a few long waits (`slow_samples`)."});
  figure("wait_resolution_s", &SinkProfile::wait_resolution_s,
         {"The waits were cut to whole multiples of this, so each may be that much longer; null: they were "
          "not."});
  figure("longest_waits", &SinkProfile::longest_waits, {"The longest, longest first; at most 8."});
  figure("sequence", &SinkProfile::sequence, {"The last 512 steps, newest last."});
  figure("marked", &SinkProfile::marked, {"Steps cut by hooks; null where there were none."});
}

}  // namespace headrace::profile
