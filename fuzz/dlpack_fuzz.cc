// Bytes as the fields of a producer's tensor: refused, or an array that lies within what it says.
//
// Input: device type, device, ndim, code, bits, lanes (4, 4, 4, 1, 1, 2 bytes), byte offset (8), then pairs
// of size and stride (8 bytes each). Where the elements fit into a small buffer that really is there, they
// are copied.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "headrace/profile/errors.h"
#include "headrace/transport/dlpack.h"

using namespace headrace;
__extension__ using int128 = __int128;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kFixed = 24;
  if (size < kFixed) return 0;
  static std::vector<std::byte> memory(std::size_t{1} << 16);
  transport::dlpack::ManagedTensor managed{};
  transport::dlpack::Tensor& tensor = managed.tensor;
  std::memcpy(&tensor.device, data, 8);
  std::memcpy(&tensor.ndim, data + 8, 4);
  std::memcpy(&tensor.dtype, data + 12, 4);
  std::memcpy(&tensor.byte_offset, data + 16, 8);
  const std::size_t pairs = (size - kFixed) / 16;
  std::vector<std::int64_t> shape(pairs);
  std::vector<std::int64_t> strides(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    std::memcpy(&shape[i], data + kFixed + i * 16, 8);
    std::memcpy(&strides[i], data + kFixed + i * 16 + 8, 8);
  }
  // The producer answers for its pointers: as many sizes as it says there are.
  if (tensor.ndim > static_cast<std::int64_t>(pairs)) tensor.ndim = static_cast<std::int32_t>(pairs);
  tensor.shape = shape.data();
  tensor.strides = size % 2 == 0 ? strides.data() : nullptr;
  // The first element in the middle: strides may be negative.
  std::byte* const middle = memory.data() + memory.size() / 2;
  tensor.data = middle;
  try {
    const transport::ImportedArray array = transport::import_tensor(managed);
    if (array.bytes == 0 || array.bytes > memory.size()) return 0;
    // Every element must lie within the buffer before it may be read.
    auto low = static_cast<int128>(tensor.byte_offset) + static_cast<int128>(memory.size() / 2);
    int128 high = low + static_cast<int128>(array.element_bytes);
    for (std::size_t i = 0; i < array.shape.size(); ++i) {
      const int128 extent = static_cast<int128>(array.shape[i] - 1) * array.strides[i] *
                            static_cast<int128>(array.element_bytes);
      (extent < 0 ? low : high) += extent;
    }
    if (low < 0 || high > static_cast<int128>(memory.size())) return 0;
    std::vector<std::byte> copy(array.bytes);
    transport::copy_compact(array, copy.data());
    if (array.compact && std::memcmp(copy.data(), array.data, array.bytes) != 0) std::abort();
  } catch (const UsageError&) {
    // Refused, in words.
  }
  return 0;
}
