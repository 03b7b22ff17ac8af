// The training loop's compute without what the input's threads do to it.
#pragma once

#include "headrace/analysis/read/interpreter_lock.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Whether the loop's thread hardly computes in its own step: it sleeps, or waits for a device.
bool sleeps(const profile::SinkProfile& sink) noexcept;

/// Seconds a step in which the loop's own thread waited for a core, as far as this run had taken them.
double core_wait_s(const profile::Profile& profile) noexcept;

/// Seconds a step: its compute without waits for a core or the lock, and without what sharing them slows it down.
double own_compute_s(const profile::Profile& profile, const InterpreterLock& lock);

}  // namespace headrace::analysis
