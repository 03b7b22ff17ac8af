#include "diagnosis_steps.h"

#include <algorithm>

#include "../read/numbers.h"

namespace headrace::analysis {
namespace {

constexpr std::size_t kMax = 32;

/// No window shows how busy an operator was that was neither timed nor sampled: it may lead where others
/// seem to. One that fills no queue runs inside the operator that takes from it.
bool all_are_timed(const profile::Profile& profile) {
  const auto fills_a_queue = [&](std::size_t op) {
    return std::any_of(profile.queues.begin(), profile.queues.end(),
                       [op](const profile::QueueProfile& queue) {
                         return contains(queue.from_operators, static_cast<int>(op));
                       });
  };
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const profile::OperatorProfile& op = profile.operators[i];
    if (op.fidelity != profile::Fidelity::sampled || op.items || !fills_a_queue(i)) continue;
    const bool unknown =
        std::any_of(profile.windows.begin(), profile.windows.end(),
                    [i](const profile::Window& window) { return window.operators[i].busy_share < 0; });
    if (unknown) return false;
  }
  return true;
}

VerdictWindow verdict_on(const Case& facts, const Phase& phase, const Diagnosis& whole) {
  VerdictWindow window{phase.start_s, phase.end_s,
                       phase.bound ? VerdictKind::input_bound : VerdictKind::not_input_bound, std::nullopt};
  if (phase.bound && !all_are_timed(facts.profile)) {
    window.op = whole.op;
  } else if (phase.bound && phase.leader() >= 0) {
    window.op = facts.profile.operators[static_cast<std::size_t>(phase.leader())].name;
  }
  return window;
}

std::vector<VerdictWindow> joined(const Case& facts, const Diagnosis& whole) {
  std::vector<VerdictWindow> windows;
  for (const Phase& phase : facts.phases) {
    VerdictWindow window = verdict_on(facts, phase, whole);
    if (!windows.empty() && windows.back().kind == window.kind && windows.back().op == window.op) {
      windows.back().end_s = window.end_s;
    } else {
      windows.push_back(std::move(window));
    }
  }
  return windows;
}

}  // namespace

std::vector<VerdictWindow> verdict_windows(const Case& facts, const Diagnosis& whole) {
  std::vector<VerdictWindow> windows = joined(facts, whole);
  const bool in_turn = whole.cause && rule_of(*whole.cause).moves_between_operators;
  const bool same_everywhere = whole.cause && rule_of(*whole.cause).same_in_every_window;
  // Windows look at starving alone; what fetching, copying or drawing indices costs, and waits for a core, are
  // the same in all of them.
  const bool served = facts.gate.handoff_only || facts.gate.transfer_only || facts.gate.loop_waits_for_core ||
                      facts.candidate_is(profile::OperatorKind::sampler);
  if (windows.size() < 2 || same_everywhere || served) return {};
  double total_s = 0;
  for (const Phase& phase : facts.phases) total_s += phase.end_s - phase.start_s;
  std::erase_if(windows, [&](const VerdictWindow& window) {
    const bool same =
        window.kind == whole.kind && (window.op == whole.op || window.kind == VerdictKind::not_input_bound);
    // Not worth a line, except where operators limit in turn.
    const bool brief = !in_turn && window.end_s - window.start_s < kHardly * total_s;
    return (!in_turn && same) || brief;
  });
  if (windows.size() > kMax) {
    std::nth_element(windows.begin(), windows.begin() + kMax, windows.end(),
                     [](const VerdictWindow& a, const VerdictWindow& b) {
                       return a.end_s - a.start_s > b.end_s - b.start_s;
                     });
    windows.resize(kMax);
    std::sort(windows.begin(), windows.end(),
              [](const VerdictWindow& a, const VerdictWindow& b) { return a.start_s < b.start_s; });
  }
  return windows;
}

}  // namespace headrace::analysis
