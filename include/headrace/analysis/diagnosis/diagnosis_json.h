// A Diagnosis as JSON, both ways. Names are those of the struct; `op` is "operator", `from` and `to` are null
// where there is no value. The rules of profile_json.h hold here too.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "headrace/analysis/diagnosis/diagnosis.h"

namespace headrace::analysis {

nlohmann::json to_json(const Diagnosis& diagnosis);

/// Throws FormatError that names the field where a type is wrong.
Diagnosis diagnosis_from_tree(const nlohmann::json& tree);

/// `indent` < 0: one line.
std::string diagnosis_to_json(const Diagnosis& diagnosis, int indent = -1);

/// Total: any bytes give a Diagnosis or a FormatError.
Diagnosis diagnosis_from_json(std::string_view text);

}  // namespace headrace::analysis
