// What the workers of a stage did, as far as its queues tell.
#pragma once

#include "headrace/profile/graph.h"
#include "headrace/profile/operator_profile.h"
#include "profile/item_flow.h"

namespace headrace::profile {

/// Of a stage that was busy for `busy_ns` of its workers' `present_ns`. The threads of an executor that several
/// stages share tell nothing of one stage's waits; its queues do.
States stage_states_ns(const GraphNode& node, const ItemFlow& flow, double busy_ns, double present_ns);

/// Of an operator of which no call was timed: figures that nothing tells are absent. Where the queues around it
/// were looked at often enough, it was at work while it had input and room for output: at least for what their
/// empty and full times leave. `present_s`: of one worker; `batches`: delivered in that time.
void make_untimed(const GraphNode& node, const ItemFlow& flow, double present_s, double batches,
                  OperatorProfile& out);

}  // namespace headrace::profile
