#include "trace/zlib_block.h"

#include <isa-l/igzip_lib.h>

#include <cstdint>
#include <limits>

namespace headrace::trace {

std::optional<std::string> inflated_block(std::string_view compressed, std::size_t most) {
  if (compressed.size() > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_ZLIB;
  std::string input(compressed);  // the library takes bytes that it could write to
  state.next_in = reinterpret_cast<std::uint8_t*>(input.data());
  state.avail_in = static_cast<std::uint32_t>(input.size());
  std::string bytes;
  constexpr std::size_t kChunk = std::size_t{256} << 10;
  while (state.block_state != ISAL_BLOCK_FINISH) {
    const std::size_t size = bytes.size();
    if (size >= most) return std::nullopt;
    bytes.resize(size + kChunk);
    state.next_out = reinterpret_cast<std::uint8_t*>(bytes.data() + size);
    state.avail_out = static_cast<std::uint32_t>(kChunk);
    const int error = isal_inflate(&state);
    bytes.resize(bytes.size() - state.avail_out);
    const bool stuck = bytes.size() == size && state.block_state != ISAL_BLOCK_FINISH;
    if (error < ISAL_DECOMP_OK || stuck) return std::nullopt;
  }
  return bytes;
}

}  // namespace headrace::trace
