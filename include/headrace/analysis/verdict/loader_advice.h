// Cures in the own parameters of a loader that makes batches ahead, each with its prediction.
//
// Nothing is advised that the framework refuses (some parameters need workers), has no parameter for, or that
// gains no more than its interval.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/analysis/read/loader.h"
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

}  // namespace headrace::analysis
