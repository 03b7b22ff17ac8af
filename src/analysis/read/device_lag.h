// An asynchronous device works on after the host has left a step: what the loop waits meanwhile costs nothing.
#pragma once

#include <optional>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Whether the training step is mainly an asynchronous device's work: what its host computes beside it is not the
/// step's.
bool works_on_device(const profile::SinkProfile& sink) noexcept;

/// Seconds a step that the device works on while the loop waits for its next batch; 0 where the host waits for
/// the device within the step, or where nothing tells how long it works.
double device_lag_s(const profile::SinkProfile& sink) noexcept;

/// How long the device works on a step, where the host runs ahead of it; else 0.
double device_behind_s(const profile::SinkProfile& sink) noexcept;

/// The run as its device sees it, with that time as compute instead of waiting; nothing if there is no lag.
std::optional<profile::Profile> seen_by_device(const profile::Profile& profile);

}  // namespace headrace::analysis
