// The graph of a framework's loader whose stages are connected by queues: each operator's and queue's record
// says which stages of the loader's model it is of.
#pragma once

#include "headrace/profile/graph.h"

namespace headrace::profile {

/// One node for each operator of the loader, in the order of the stages; what never ran is there without
/// cells. Operators of one stage share its workers, so they share a segment. Annotated operators inside a
/// stage's threads stand in that stage.
Graph stage_graph(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                  const LoaderModel& model);

}  // namespace headrace::profile
