// A rank's files as a Profile: what any other loader is judged by.
#pragma once

#include "headrace/loader_files/rank_files.h"
#include "headrace/profile/profile.h"

namespace headrace::loader_files {

/// Operators in the order of the data flow, their output queues with histograms of the samples, the steps of
/// the training loop, the machine. How each figure comes about (docs/mindspore.md says it for users):
///
///     steps     end of batch i + 1 - end of batch i; the wait is what the file gives; compute is the rest.
///               Where the device's GetNext calls are recorded, those are the loop's: from start to start.
///     samples   those after the first batch, up to the last one, and up to where the source ran dry
///     at work   an operator whose input queues had rows and whose output queue had room, in so many samples:
///               its busy share is at least that, and at least its CPU time / workers
///     demand    busy share x step
///
/// What no file tells is empty: items, service times, and everything of operators that run inside another
/// one. `notes` says what limits the figures. Thread-safe; never fails.
profile::Profile profile_of(const RankFiles& files);

}  // namespace headrace::loader_files
