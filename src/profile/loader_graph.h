// The graph of a framework's loader whose workers make whole batches: each record says which loader it
// belongs to and where it stands, so nothing has to be guessed from what threads did.
#pragma once

#include "headrace/profile/graph.h"

namespace headrace::profile {

/// sampler ▸ index queues ▸ dataset, transforms, collate (in the workers) ▸ results ▸ handoff, pin_memory ▸
/// reorder ▸ sink. What the workers call besides (operators that the user annotated) stands between the
/// dataset and the transforms; copies to the device in the training step stand last.
Graph loader_graph(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                   const LoaderModel* model);

}  // namespace headrace::profile
