// The graphs of frameworks' loaders: each record contains its loader and its stage, so nothing is guessed from threads.
#pragma once

#include "headrace/profile/graph.h"

namespace headrace::profile {

/// sampler ▸ index queues ▸ dataset, transforms, collate (in the workers) ▸ results ▸ handoff, pin_memory ▸
/// reorder ▸ sink. What the workers call besides (operators that the user annotated) stands between the
/// dataset and the transforms; copies to the device in the training step stand last.
Graph loader_graph(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                   const LoaderModel* model);

/// One node for each operator of the loader, in the order of the stages; what never ran is there without
/// cells. Operators of one stage share its workers, so they share a segment. Annotated operators inside a
/// stage's threads stand in that stage.
Graph stage_graph(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                  const LoaderModel& model);

}  // namespace headrace::profile
