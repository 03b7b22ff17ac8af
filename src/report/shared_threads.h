// Operators that share a thread: what their workers do while they are in one of the others.
#pragma once

#include <cstddef>

#include "headrace/profile/profile.h"

namespace headrace::report {

/// The states of one operator, with the time that its workers spend in other operators of the same thread
/// apart from the time in which they wait.
struct ShownStates {
  double busy = 0;
  double elsewhere = 0;    ///< in other operators of the thread, before and after this one
  double blocked_in = 0;   ///< waiting for input
  double blocked_out = 0;  ///< nowhere to put what they made
  bool known = false;
};

ShownStates shown_states(const profile::Profile& profile, std::size_t index);

/// Whether any operator shares its thread, so that `elsewhere` says something.
bool any_elsewhere(const profile::Profile& profile);

}  // namespace headrace::report
