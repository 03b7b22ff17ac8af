// The first question: does the input cost the training loop anything?
#pragma once

#include <string>

#include "headrace/analysis/read/interpreter_lock.h"
#include "headrace/analysis/read/thresholds.h"
#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

struct Gate {
  enum class State { kUnmeasurable, kHealthy, kBound };

  State state = State::kUnmeasurable;
  std::string missing;       ///< kUnmeasurable: what there was too little of
  std::uint64_t steps = 0;   ///< steady steps
  double step_s = 0;         ///< GetNext wait + compute
  double compute_s = 0;      ///< as measured
  double own_compute_s = 0;  ///< compute without waits for an interpreter lock or a core
  double wait_share = 0;
  double starved_share = 0;    ///< waiting for a batch that was not there; the input's start left out
  double starting_share = 0;   ///< of the time: waiting while workers started, or buffers were still empty
  double handoff_share = 0;    ///< waiting for batches that were
  double core_wait_share = 0;  ///< of that: waiting for a core, which is not the hand-off's own cost
  double stretch_share = 0;    ///< of the step: such waits, as far as the input causes them
  double transfer_share = 0;   ///< of the step: copies to the device that the step itself waits for
  double loop_core_wait_share =
      0;                         ///< of the step: the loop waits for a core that the input's operators have
  double served_share = 0;       ///< the larger of both: fetching (without waiting for a core), copying
  double device_lag_s = 0;       ///< longer waits, which are in no share here: the device still worked
  double ceiling_s = 0;          ///< a step whose input costs nothing, where it was measured; 0: it was not
  double input_share = 0;        ///< what the input costs altogether, 0 to 1; measured, where that was done
  double times_limit = 0;        ///< the share that decides / its threshold
  double error_of_limit = 0;     ///< standard error of the share of waits / the same
  bool opaque = false;           ///< readiness is unknown: the loader shows neither queues nor operators
  bool waits_are_noise = false;  ///< it starved in few steps, while other programs had the cores: healthy
  bool handoff_only = false;     ///< bound by the hand-off floor alone
  bool transfer_only = false;    ///< bound by the copies alone
  bool loop_waits_for_core =
      false;  ///< batches are ready, and the input's work takes the cores that the loop needs
  /// The workers are the limit, and finished batches wait because those busy workers are slow to pass them
  /// on: the floor is not the hand-off's own cost.
  bool floor_by_workers = false;
  Evidence evidence;

  /// How much faster a step would be if the input cost nothing.
  double most_speedup() const noexcept;
};

/// Other programs use more of the cores than this run, and together they use most of them.
bool others_have_the_cores(const profile::Host& host);

/// Every epoch has one batch: the loop makes an iterator for each of its steps, so none of them is steady.
bool starts_for_every_batch(const profile::Profile& profile, const GateThresholds& thresholds);

/// True if no loop has asked this loader for a batch yet.
bool not_begun(const profile::Profile& profile);

/// Fewer than 8 steady steps or less than 50 ms of them: kUnmeasurable.
Gate judge_gate(const profile::Profile& profile, const InterpreterLock& lock,
                const GateThresholds& thresholds);

/// Adds to the evidence what the waits no longer contain of a run that is judged as its device sees it. `recorded`: as
/// it was before.
void note_device_lag(const profile::SinkProfile& recorded, Gate& gate);

}  // namespace headrace::analysis
