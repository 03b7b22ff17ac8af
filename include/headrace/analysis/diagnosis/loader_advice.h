// Cures in a DataLoader's own parameters, each with what the predictor says it buys.
//
// Nothing is advised that the framework refuses (prefetch_factor, in_order and persistent_workers need
// workers) or that gains no more than its interval.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/analysis/diagnosis/diagnosis.h"
#include "headrace/analysis/diagnosis/loader.h"
#include "headrace/analysis/diagnosis/predictor.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// The smallest prefetch_factor with most of what a large one gains.
std::optional<Advice> advise_prefetch(const profile::Profile& profile, const Loader& loader,
                                      const Predictor& predictor);

/// in_order=False.
std::optional<Advice> advise_any_order(const profile::Profile& profile, const Loader& loader,
                                       const Predictor& predictor);

/// num_workers=0, where making a batch takes less than handing it over.
std::optional<Advice> advise_no_workers(const profile::Profile& profile, const Loader& loader,
                                        const Predictor& predictor);

/// Fewer workers that do as much; only where there are more than cores.
std::optional<Advice> advise_fewer_workers(const profile::Profile& profile, const Loader& loader,
                                           const Predictor& predictor);

/// "load in 4 workers instead of 2", with what a stream needs for that.
std::string workers_sentence(const Loader& loader, int to);

}  // namespace headrace::analysis
