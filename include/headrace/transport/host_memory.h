// Host memory for large copies: aligned, on huge pages where they exist, faulted in once.
#pragma once

#include "headrace/transport/block_ring.h"

namespace headrace::transport {

/// Blocks below 2 MiB are aligned to 64 bytes; larger ones are mapped on 2 MiB boundaries and ask for huge
/// pages. Every page is written once before the block is handed out: a first copy into fresh memory takes
/// twice as long.
class HostMemory : public BlockMemory {
 public:
  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* data, std::size_t bytes) noexcept override;
};

}  // namespace headrace::transport
