// Places of operators in the graph of a framework's loader, in the order of the data flow.
#pragma once

#include <cstdint>

namespace headrace::profile {

inline constexpr std::uint32_t kStageSampler = 10;
inline constexpr std::uint32_t kStageDataset =
    100;  ///< + depth: what a wrapper reads comes before the wrapper
inline constexpr std::uint32_t kStageTransform = 200;  ///< + position in the chain
inline constexpr std::uint32_t kStageCollate = 800;
inline constexpr std::uint32_t kStageHandoff = 900;
inline constexpr std::uint32_t kStagePin = 910;

}  // namespace headrace::profile
