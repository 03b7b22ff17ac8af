#include "headrace/transport/cuda_device.h"

#include <algorithm>
#include <cstring>

#include "headrace/profile/errors.h"
#include "transport/cuda_context.h"
#include "transport/cuda_copy.h"

namespace headrace::transport {
namespace {

/// Staged and handed to the engine piece by piece: the engine reads the first while the next is staged.
constexpr std::size_t kPiece = std::size_t{4} << 20;

/// Marks that the next copy into a block waits for: one on each stream that read it.
using Fence = std::vector<std::unique_ptr<CudaMark>>;

CudaPointer address_of(const std::byte* data) {
  return static_cast<CudaPointer>(reinterpret_cast<std::uintptr_t>(data));
}

}  // namespace

struct CudaDevice::Opened {
  std::shared_ptr<CudaContext> context;
  std::shared_ptr<BlockRing> ring;
};

CudaDevice::Opened CudaDevice::open(int index, const DeviceOptions& options) {
  if (options.bandwidth)
    throw UsageError("only host memory can be throttled: a CUDA device has its own bandwidth");
  Opened opened;
  opened.context = std::make_shared<CudaContext>(CudaDriver::load(options.cuda_library), index);
  opened.ring = BlockRing::make(std::make_unique<CudaMemory>(opened.context), options.buffers,
                                options.buffer_bytes, options.max_buffer_bytes);
  return opened;
}

CudaDevice::CudaDevice(int index, const DeviceOptions& options)
    : CudaDevice(index, options, open(index, options)) {}

CudaDevice::CudaDevice(int index, const DeviceOptions& options, Opened opened)
    : Device("cuda:" + std::to_string(index), std::move(opened.ring)),
      index_(index),
      pin_(options.pin),
      context_(std::move(opened.context)) {
  // As many as there are blocks to copy into: more copies cannot be under way.
  if (pin_) {
    staging_ = BlockRing::make(std::make_unique<PinnedMemory>(context_), options.buffers,
                               options.buffer_bytes, options.max_buffer_bytes);
  }
}

CudaDevice::~CudaDevice() = default;

bool CudaDevice::is_pinned(HostBytes array) const noexcept {
  unsigned type = 0;
  // An address that CUDA does not know is an error to it, and pageable memory to us.
  return !array.empty() &&
         context_->driver().pointer_get_attribute(&type, kCudaPointerAttributeMemoryType,
                                                  address_of(array.data())) == kCudaSuccess &&
         type == kCudaMemoryTypeHost;
}

Block CudaDevice::staging_block(std::size_t bytes) {
  for (;;) {
    Acquired acquired = staging_->acquire(bytes, BlockRing::Clock::time_point::min());
    if (acquired.outcome == AcquireOutcome::acquired) return std::move(acquired.block);
    // All of them are being read by the engine; the oldest copy is done first.
    if (under_way_.empty())
      throw DeviceError(name() + ": no staging buffer, and no copy under way that holds one");
    const std::shared_ptr<CudaCopy> oldest = std::move(under_way_.front());
    under_way_.pop_front();
    oldest->wait();
  }
}

void CudaDevice::put_on_stream(std::span<const HostBytes> arrays, const std::vector<bool>& pinned,
                               const std::vector<std::size_t>& offsets, Block& into, CudaCopy& copy) {
  const CudaDriver& driver = context_->driver();
  const auto order = [&](std::size_t offset, const std::byte* from, std::size_t bytes) {
    driver.check(
        driver.copy_to_device_async(address_of(into.data() + offset), from, bytes, context_->stream()),
        "cuMemcpyHtoDAsync");
  };
  Block staging;
  if (pin_ && std::find(pinned.begin(), pinned.end(), false) != pinned.end())
    staging = staging_block(bytes_needed(arrays));
  // The staging buffer is laid out as the block is, so neighbours go in one order.
  std::size_t staged_from = 0;
  std::size_t staged_to = 0;
  const auto order_staged = [&] {
    if (staged_to > staged_from) order(staged_from, staging.data() + staged_from, staged_to - staged_from);
    staged_from = staged_to = 0;
  };
  copy.began(context_->stream());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (!staging || pinned[i]) {
      order_staged();
      if (!arrays[i].empty()) order(offsets[i], arrays[i].data(), arrays[i].size());
      continue;
    }
    for (std::size_t at = 0; at < arrays[i].size(); at += kPiece) {
      const std::size_t bytes = std::min(kPiece, arrays[i].size() - at);
      std::memcpy(staging.data() + offsets[i] + at, arrays[i].data() + at, bytes);
      if (staged_to == staged_from) staged_from = offsets[i] + at;
      staged_to = offsets[i] + at + bytes;
      if (staged_to - staged_from >= kPiece) order_staged();
    }
  }
  order_staged();
  copy.hold_staging(std::move(staging));
  copy.ordered(context_->stream());
}

Copied CudaDevice::copy(std::span<const HostBytes> arrays, Block& into) {
  Copied copied;
  copied.offsets = lay_out_in(into, arrays);
  const std::scoped_lock lock(mutex_);
  const CudaContext::Current current(*context_);
  std::vector<bool> pinned;
  for (const HostBytes array : arrays) {
    pinned.push_back(is_pinned(array));
    const auto bytes = static_cast<std::int64_t>(array.size());
    copied.bytes += bytes;
    (pinned.back() ? copied.pinned_bytes : copied.pageable_bytes) += bytes;
  }
  while (!under_way_.empty() && under_way_.front()->done()) under_way_.pop_front();
  if (into.fence() != nullptr) {
    for (const auto& mark : *std::static_pointer_cast<Fence>(into.fence())) mark->hold(context_->stream());
    into.fence().reset();
  }
  auto copy = std::make_shared<CudaCopy>(context_);
  try {
    put_on_stream(arrays, pinned, copied.offsets, into, *copy);
  } catch (...) {
    // Copies on the stream already read the caller's arrays and the staging buffer.
    context_->driver().stream_synchronize(context_->stream());
    throw;
  }
  under_way_.push_back(copy);
  copied.completion = Completion(std::move(copy));
  return copied;
}

void CudaDevice::make_stream_wait(void* stream, const Completion& completion) {
  if (const auto copy = std::dynamic_pointer_cast<CudaCopy>(completion.pending()))
    copy->make_wait(static_cast<CudaStream>(stream));
}

void CudaDevice::give_back_after(Block block, std::span<void* const> streams) {
  expect_within(block, 0, 0);
  const auto fence = std::make_shared<Fence>();
  for (void* const stream : streams) {
    fence->push_back(std::make_unique<CudaMark>(context_, false));
    fence->back()->record(static_cast<CudaStream>(stream));
  }
  if (!fence->empty()) block.fence() = fence;
}

void CudaDevice::read_back(std::span<std::byte> to, const Block& from, std::size_t offset) {
  expect_within(from, offset, to.size());
  if (to.empty()) return;
  const CudaContext::Current current(*context_);
  const CudaDriver& driver = context_->driver();
  // The stream for copies does not wait for others, nor others for it.
  driver.check(driver.stream_synchronize(context_->stream()), "cuStreamSynchronize");
  driver.check(driver.copy_to_host(to.data(), address_of(from.data()) + offset, to.size()), "cuMemcpyDtoH");
}

}  // namespace headrace::transport
