// Verdicts as the words that users read, for labels and failure messages.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "headrace/analysis/verdict/diagnosis.h"

namespace headrace::analysis {

inline std::string word_of(VerdictKind kind) { return std::string(name_of(kind)); }
/// "" if there is none.
inline std::string word_of(const std::optional<Cause>& cause) {
  return cause ? std::string(name_of(*cause)) : "";
}

inline void PrintTo(VerdictKind kind, std::ostream* out) { *out << name_of(kind); }
inline void PrintTo(Cause cause, std::ostream* out) { *out << name_of(cause); }

}  // namespace headrace::analysis
