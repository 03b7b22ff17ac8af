#include "shared_threads.h"

#include <algorithm>
#include <cmath>

namespace headrace::report {
namespace {

/// Shares of the workers' time that operators of the same thread take, in the order of the data flow.
struct Others {
  double before = 0;
  double after = 0;
};

Others others_of(const profile::Profile& profile, std::size_t index) {
  Others others;
  const profile::OperatorProfile& op = profile.operators[index];
  if (op.segment < 0) return others;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const profile::OperatorProfile& other = profile.operators[i];
    if (i == index || other.segment != op.segment || !std::isfinite(other.states.busy)) continue;
    (i < index ? others.before : others.after) += other.states.busy;
  }
  return others;
}

}  // namespace

ShownStates shown_states(const profile::Profile& profile, std::size_t index) {
  const profile::States& states = profile.operators[index].states;
  const Others others = others_of(profile, index);
  ShownStates shown;
  shown.known = states.busy + states.blocked_in + states.blocked_out + states.idle > 0;
  // An operator's own states count a worker that is at an earlier operator as waiting for input, and one that
  // is at a later operator as blocked.
  const double before = std::clamp(others.before, 0.0, std::max(0.0, states.blocked_in));
  const double after = std::clamp(others.after, 0.0, std::max(0.0, states.blocked_out));
  shown.busy = states.busy;
  shown.elsewhere = before + after;
  shown.blocked_in = states.blocked_in - before;
  shown.blocked_out = states.blocked_out - after;
  return shown;
}

bool any_elsewhere(const profile::Profile& profile) {
  constexpr double kWorthAColumn = 0.005;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    if (shown_states(profile, i).elsewhere > kWorthAColumn) return true;
  }
  return false;
}

}  // namespace headrace::report
