// Which operator the rules point at, before the causes are asked.
#pragma once

#include "headrace/analysis/verdict/causes/cause.h"

namespace headrace::analysis {

/// Sets candidate, intermittent, utilisation and pressure; and, where a loader's floor turns out to be its
/// workers' doing, the gate's handoff_only and floor_by_workers. Gate, demand, queues, ledger, phases and
/// shapes are there already.
void point_at_candidate(Case& facts);

}  // namespace headrace::analysis
