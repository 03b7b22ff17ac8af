// Which rank the others wait for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/analysis/device/scope.h"
#include "headrace/analysis/rows.h"

namespace headrace::analysis::device {

struct StragglersOptions {
  /// Only these steps; empty: all that every rank has and that are not cut off.
  std::vector<std::int64_t> steps;
  /// How many ranks to name at most.
  std::size_t candidates = 2;
};

using StragglersColumns = ColumnList<
    Integer<"rank">, Integer<"candidate", "1: a straggler.">,
    Integer<"late_steps", "Steps in which it was among the last to start the collective.">, Integer<"steps">,
    Number<"mean_late_s", "Behind the first rank, by the machines' clocks.">,
    Number<"mean_wait_s",
           "How much longer its kernel ran than the shortest; close to 0, the others waited for it.">>;

/// One row per rank, the one that was late in most steps first.
///
/// A collective cannot begin to move data before the last rank has come, so the last to start it holds the
/// others up. Looked at is one collective: of all kernels of kind communication that took at least 1 % of a
/// step, by name and stream and the last of each step, the one whose duration differs most between ranks.
/// `late_steps`: in how many of its `steps` this rank was one of the `candidates` that started it last.
/// `mean_late_s`: how much later than the first rank it started, on average; it compares the clocks of the
/// ranks' machines and is as good as these. `mean_wait_s`: how much longer its kernel ran than the shortest
/// of the same step, which needs no common clock. How to read it: a rank with `late_steps` close to `steps`
/// and a wait close to 0 is the straggler.
///
/// `candidate` is 1 for stragglers: the largest group of first rows, of at most `candidates` and half of the
/// ranks, each of which stands out from the rows behind the group. A rank stands out when its `mean_late_s`
/// exceeds the greatest of the others by more than
///
///     the others' greatest `mean_late_s` less their smallest, and
///     the standard deviation, over the steps, of its start less the mean start of the others (0 for one
///     step)
///
/// If none does, or all are equally late, `candidate` is 0 throughout and a note says so. Two ranks
/// in a single step show neither spread, so none stands out.
///
/// Needs steps, and traces of two ranks or more.
Table stragglers(std::span<const trace::Trace> traces, const StragglersOptions& options = {});

}  // namespace headrace::analysis::device
