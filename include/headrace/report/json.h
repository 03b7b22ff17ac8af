// The saved report: one JSON document with everything a later reader, tool or version needs.
//
//     {"version": 1, "loader": "train", "rank": 0, "profile": {...}, "diagnosis": {...}, "steps": {...}}
#pragma once

#include <string>

#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::report {

/// Raised when a field changes its meaning; new fields do not raise it.
inline constexpr int kVersion = 1;

/// `indent` < 0: one line. "profile" reads back with profile_from_tree; diagnose() gives "diagnosis" again.
/// "steps": {"source", "average", "per_step"}, seconds, tail_s null if the loader alone was seen.
/// Thread-safe.
std::string to_json(const profile::Profile& profile, const analysis::Diagnosis& diagnosis, int indent = 2);

}  // namespace headrace::report
