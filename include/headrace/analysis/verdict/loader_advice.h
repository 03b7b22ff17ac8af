// Cures in the own parameters of a loader that makes batches ahead, each with its prediction.
//
// Nothing is advised that the framework refuses (some parameters need workers), has no parameter for, or that
// gains no more than its interval.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/analysis/model/change.h"
#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/read/thresholds.h"
#include "headrace/analysis/simulate/predictor.h"
#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// The smallest window with most of what a large one gains.
std::optional<Advice> advise_prefetch(const Loader& loader, const Predictor& predictor);

/// Batches as they are ready.
std::optional<Advice> advise_any_order(const Loader& loader, const Predictor& predictor);

/// Fewer workers, or none, where they shorten the step: handing a batch over costs more than the workers
/// save, or they take cores from the training step. The fewest that are as good as the best number.
std::optional<Advice> advise_fewer_workers(const Loader& loader, const Predictor& predictor);

/// As many workers as cores, where there are more and they do no more: it saves memory, so no step is
/// predicted.
std::optional<Advice> advise_workers_as_cores(const Loader& loader, const Predictor& predictor);

/// The place to set `parameter`, if not the loader itself; else "".
std::string where_to_set(const profile::LoaderModel& model, const std::string& parameter);

/// "load in 4 workers instead of 2", with what a stream needs for that.
std::string workers_sentence(const Loader& loader, int to);

/// To copy batches to the device while the step runs. Empty where the loader has no such parameter, or it is set. It has no prediction, because nothing tells which
/// part of `lost_s`, the time of each step that may be saved, is spent on copying; the text says so.
std::optional<Advice> advise_copying_ahead(const profile::Profile& profile, double lost_s, double step_s);

/// How long the device waits between two steps although the loop's batches are ready: the gap of its steps less
/// what the loop starved for. Empty where that is below the share of its step at which fetching finished batches
/// counts, or where the device's steps were not recorded.
std::optional<double> device_gap_s(const profile::Profile& profile, const GateThresholds& thresholds);

/// Bytes of the batches that `changes` let wait ready beyond those of today (below 0: fewer), every place
/// taken: places x the largest batch seen. A worker process's own memory comes on top. Empty where batches
/// were not looked at, or the changes are none of buffers and workers.
std::optional<double> more_memory(const profile::Profile& profile, const std::vector<Change>& changes);

}  // namespace headrace::analysis
