// The verdict alone, for lists of runs.
//
//     const Verdict verdict = verdict_on(profile);   // verdict.op == "decode"
#pragma once

#include <optional>
#include <string>

#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

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
