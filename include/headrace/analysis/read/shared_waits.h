// Waits that an operator's workers may share with each other: for a lock, or one peer that answers.
//
// Read from the functions that took the operator's time in the batches that were sampled.
#pragma once

#include "headrace/profile/operator_profile.h"

namespace headrace::analysis {

/// Share of the operator's time in functions that acquire a lock of several processes or threads; 0: none was seen.
///
/// How to read it: the workers queue for one thing, and another worker makes the queue longer.
double lock_share(const profile::OperatorProfile& op);

/// Share of its time in functions that receive from a socket or a pipe; 0: none was seen.
///
/// How to read it: more workers gain only if the peer serves several at once, which one recording cannot tell.
double peer_share(const profile::OperatorProfile& op);

}  // namespace headrace::analysis
