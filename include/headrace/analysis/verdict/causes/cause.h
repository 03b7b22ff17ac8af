// One cause: its sign, its sentence, its cure. Those of one page of docs/verdicts share a file of
// src/analysis/verdict/causes. Adding one touches that file, its row in causes/table.cc, its word in diagnosis.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/analysis/read/demand.h"
#include "headrace/analysis/read/interpreter_lock.h"
#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/read/service_shape.h"
#include "headrace/analysis/simulate/predictor.h"
#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/analysis/verdict/gate.h"
#include "headrace/analysis/verdict/interventions.h"
#include "headrace/analysis/verdict/opinions.h"
#include "headrace/analysis/verdict/phases.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Everything the rules found, for a cause to judge by.
struct Case {
  const profile::Profile& profile;
  const Predictor& predictor;
  const Thresholds& thresholds;
  std::optional<Loader> loader;  ///< where a framework's own loader was recorded
  Gate gate;
  InterpreterLock lock;
  std::vector<ServiceShape> shapes;  ///< per operator
  DemandRanking demand;
  QueueOpinion queues;
  LedgerOpinion ledger;
  std::vector<Phase> phases;
  std::optional<Intermittence> intermittent;
  std::optional<Drain> drain;
  Interventions interventions;
  MoreWorkers more;        ///< of the candidate
  int candidate = -1;      ///< operator that the rules point at; below 0: none
  double utilisation = 0;  ///< of the candidate's segment: demand / step, in the bound part of the run
  double pressure = 0;     ///< its demand / the sink's own compute: above 1, it cannot keep up

  /// The candidate is of that kind.
  bool candidate_is(profile::OperatorKind kind) const { return candidate >= 0 && op().kind == kind; }
  const profile::OperatorProfile& op() const {
    return profile.operators[static_cast<std::size_t>(candidate)];
  }
  /// The candidate is the wrapped object as a whole, nothing inside it was recorded (or threads compute that were not
  /// recorded), and the loop's thread hardly computes in it: what it waits for runs elsewhere, or is storage.
  bool waits_for_unseen() const noexcept;
  /// Standard deviation / mean of what a batch takes the candidate.
  double spread_per_batch() const noexcept;
  /// Its rate, not its variance, is the limit: even times of everything would gain less than half of what an input
  /// without cost would. Where that cannot be simulated, it is slower than the sink, or never rests.
  bool rate_bound() const noexcept;
  /// Without that share of the time of its items, the candidate would gain half of what it would if they took none.
  /// Without a simulation, a share of half is enough.
  bool held_up_by(double share) const;
};

/// Factor of the confidence where a sign was estimated, or what it is about was not recorded or has not happened yet.
inline constexpr double kEstimated = 0.75;

/// A cause's finding once its sign holds.
struct Finding {
  std::string headline;  ///< "decode has too few workers"
  Evidence evidence;
  std::vector<Advice> advice;
  std::optional<std::string> op;  ///< the operator to act on, where it is not the candidate
  double certainty = 1;           ///< factor of the confidence
};

/// A row of the table. The flags are what sets a cause apart for the rules around it.
struct CauseRule {
  Cause cause;
  std::optional<Finding> (*judge)(const Case&);
  /// Without it the run is healthy: it is judged in healthy runs too, and the verdict is "not input-bound".
  bool otherwise_healthy = false;
  /// Also judged where the sink does not starve, and only fetching or copying finished batches costs too
  /// much.
  bool judged_when_served = false;
  /// Also judged where batches are ready, and the loop waits for cores that the input's operators have.
  bool judged_when_loop_waits_for_core = false;
  /// Different operators limit at different times: the verdict names none of them, every window is shown, and
  /// the advice is a plan already.
  bool moves_between_operators = false;
  /// All parts of the run have it alike, and windows that differ do so by chance: none is shown.
  bool same_in_every_window = false;
  /// It has a sign of its own; whether queues, demand and ledger agree says nothing about the confidence.
  bool found_without_demand = false;
};

/// In the order in which they are tried; the first that holds decides.
std::span<const CauseRule> causes_in_order();
const CauseRule& rule_of(Cause cause);

}  // namespace headrace::analysis
