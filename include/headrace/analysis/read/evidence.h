// A sentence that a verdict rests on.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "headrace/profile/word.h"

namespace headrace::analysis {

using profile::name_of;

/// Rule that found a sentence of the evidence.
enum class Rule : std::uint8_t { gate, queues, demand, ledger, cause, detail, functions, ranks, machine };

constexpr std::array<std::string_view, 9> names_of(Rule) noexcept {
  return {"gate", "queues", "demand", "ledger", "cause", "detail", "functions", "ranks", "machine"};
}

/// With every number it uses.
struct Evidence {
  Rule rule = Rule::cause;
  std::string says;
  std::map<std::string, double> figures;  ///< units in the names: step_s, wait_share
};

}  // namespace headrace::analysis
