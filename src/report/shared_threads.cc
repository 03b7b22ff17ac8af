#include "shared_threads.h"

#include <algorithm>
#include <cmath>

namespace headrace::report {
namespace {

/// Share of the workers' time in the other operators of the thread.
double others_of(const profile::Profile& profile, std::size_t index) {
  const profile::OperatorProfile& op = profile.operators[index];
  double sum = 0;
  for (std::size_t i = 0; i < profile.operators.size() && op.segment >= 0; ++i) {
    const profile::OperatorProfile& other = profile.operators[i];
    if (i == index || other.segment != op.segment || !std::isfinite(other.states.busy)) continue;
    sum += std::max(0.0, other.states.busy);
  }
  return sum;
}

/// Moves as much of `share` as there is from `state`.
void move(double& state, double& share, double& to) {
  const double moved = std::clamp(share, 0.0, std::max(0.0, state));
  state -= moved;
  share -= moved;
  to += moved;
}

}  // namespace

ShownStates shown_states(const profile::Profile& profile, std::size_t index) {
  const profile::States& states = profile.operators[index].states;
  ShownStates shown;
  shown.known = states.busy + states.blocked_in + states.blocked_out + states.idle > 0;
  shown.busy = states.busy;
  shown.blocked_in = states.blocked_in;
  shown.blocked_out = states.blocked_out;
  // An operator's own states count a worker that is at another operator as waiting or as blocked.
  double others = others_of(profile, index);
  const bool mostly_out = shown.blocked_out > shown.blocked_in;
  move(mostly_out ? shown.blocked_out : shown.blocked_in, others, shown.elsewhere);
  move(mostly_out ? shown.blocked_in : shown.blocked_out, others, shown.elsewhere);
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
