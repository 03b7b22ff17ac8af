// A Diagnosis as JSON. Names are those of the struct; `op` is "operator", `from` and `to` are null where
// there is no value. Nothing reads it back: diagnose() gives the same for the profile that is saved beside
// it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "headrace/analysis/verdict/diagnosis.h"

namespace headrace::analysis {

nlohmann::json to_json(const Diagnosis& diagnosis);

/// `indent` < 0: one line.
std::string diagnosis_to_json(const Diagnosis& diagnosis, int indent = -1);

}  // namespace headrace::analysis
