// Steps of the training loop itself that take many times as long as the usual one: logging, a checkpoint, an evaluation.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "headrace/analysis/read/thresholds.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Advice against collections in the loop.
inline constexpr const char* kCollectLess =
    "gc.freeze() after everything is set up, or gc.disable() and gc.collect() every few hundred steps";

struct LongSteps {
  std::size_t count = 0;
  std::size_t of_steps = 0;
  double each_s = 0;          ///< their mean compute
  double usual_s = 0;         ///< the median compute of all
  double share = 0;           ///< of the time
  double steps_apart = 0;     ///< from one to the next, on average
  bool periodic = false;      ///< always about so many
  double without_s = 0;       ///< the mean step without what they take more
  bool in_collector = false;  ///< Python's garbage collector took half of it in the loop's thread, or more
  bool reads_device = false;  ///< the loop waited there for a result of its device, which was behind
  std::string where;          ///< the function that the loop was in, where it was seen; "" otherwise
};

/// Empty where there are none, or more than a few: then they are no exceptions.
std::optional<LongSteps> long_steps(const profile::Profile& profile, const PauseThresholds& thresholds);

/// A loop that now and then waits for a result of its device runs ahead of it in between: the run with how long the device works
/// on a step; empty where something else tells. Only the wait for the batch after such a result finds the device idle.
std::optional<profile::Profile> with_device_behind(const profile::Profile& profile,
                                                   const PauseThresholds& thresholds);

/// "the training step is the limit, and it grows: ..." where the loop's own compute grows over all of the run, from a step to
/// at least twice as long a one; "" otherwise.
std::string growing_steps(const profile::Profile& profile);
std::string in_words(const LongSteps& found);
std::map<std::string, double> figures_of(const LongSteps& found);

}  // namespace headrace::analysis
