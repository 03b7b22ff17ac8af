// From what was recorded to one verdict.
//
//     analysis::Diagnosis verdict = analysis::diagnose(profile);
//     if (verdict.kind == analysis::VerdictKind::input_bound) std::cout << verdict.summary << "\n";
//
// A pure function: the same Profile gives the same Diagnosis, on any machine, at any time, without the run.
#pragma once

#include <optional>
#include <string>

#include "headrace/analysis/read/thresholds.h"
#include "headrace/analysis/simulate/predictor.h"
#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Predicts by simulation of the recorded run. Never fails: a profile that is too short, empty or absurd is
/// "undetermined" with a reason. Thread-safe. Other thresholds are for tests of what depends on them.
Diagnosis diagnose(const profile::Profile& profile, const Thresholds& thresholds = {});

/// Diagnosis by another predictor, made for a profile without absurd numbers (`plausible`).
Diagnosis diagnose(const Predictor& predictor, const Thresholds& thresholds = {});

/// The verdict alone, for lists of runs.
struct Verdict {
  VerdictKind kind = VerdictKind::undetermined;
  std::optional<std::string> op;
  std::optional<Cause> cause;
  /// By an input that is never waited for; empty where others share the cores.
  std::optional<double> most_speedup;
};

/// Kind, operator and cause as in `diagnose`, without its advice: pipelines of threads and queues are simulated only
/// for what names these, which takes some milliseconds instead of up to 100. Thread-safe; never fails.
Verdict verdict_on(const profile::Profile& profile);

}  // namespace headrace::analysis
