// Places of operators in the graph of a framework's loader, in the order of the data flow: the stage of its
// model, and the place in that stage.
#pragma once

#include <cstdint>

namespace headrace::profile {

/// A place is stage x kPlacesPerStage + the place in the stage; smaller ones come first.
inline constexpr std::uint32_t kPlacesPerStage = 1000;

/// The stages of its loader's model that a queue connects.
struct StageEdge {
  int from = -1;  ///< below 0: unknown
  int to = -1;    ///< below 0: the training loop takes from it
};

/// Stages of a loader whose workers make whole batches: draws, makes, hands over, pins.
inline constexpr std::uint32_t kStageSampler = 10;  // 0 is the place of what belongs to no stage
inline constexpr std::uint32_t kStageDataset =
    1100;  ///< + depth: what a wrapper reads comes before the wrapper
inline constexpr std::uint32_t kStageTransform = 1200;  ///< + position in the chain
inline constexpr std::uint32_t kStageCollate = 1800;
inline constexpr std::uint32_t kStageHandoff = 2000;
inline constexpr std::uint32_t kStagePin = 3000;

}  // namespace headrace::profile
