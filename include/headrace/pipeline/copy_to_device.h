// Copies batches to a device: the host queue before it, the device queue behind it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/pipeline/recorded_loop.h"
#include "headrace/transport/device.h"
#include "headrace/transport/transfer_recorder.h"

namespace headrace::pipeline {

/// A batch on a device. `source` is kept, unchanged, for as long as the copy may read it.
///
/// Before it is read: `completion.wait()`, or `device->make_stream_wait(stream, completion)`. The block goes
/// back to the device with the batch.
template <class T>
struct DeviceBatch {
  std::unique_ptr<T> source;
  transport::Block block;
  std::vector<std::size_t> offsets;  ///< of each array within the block
  std::vector<std::size_t> sizes;    ///< of each array, in bytes
  transport::Completion completion;

  /// In host memory: the address of an array. Null for devices that the host cannot read.
  const std::byte* host_data(std::size_t array) const noexcept {
    return block.data() == nullptr ? nullptr : block.data() + offsets[array];
  }
};

/// The arrays of a batch, as bytes.
template <class T>
using BytesOf = std::function<std::vector<transport::HostBytes>(const T&)>;

/// For a vector of numbers (one array), and a vector of such vectors (one array each).
template <class T>
  requires std::is_trivially_copyable_v<T>
std::vector<transport::HostBytes> bytes_of(const std::vector<T>& batch) {
  return {std::as_bytes(std::span(batch))};
}
template <class T>
  requires std::is_trivially_copyable_v<T>
std::vector<transport::HostBytes> bytes_of(const std::vector<std::vector<T>>& batch) {
  std::vector<transport::HostBytes> arrays;
  arrays.reserve(batch.size());
  for (const std::vector<T>& array : batch) arrays.push_back(std::as_bytes(std::span(array)));
  return arrays;
}

/// A block of the device. Waits for one, but not beyond the end of the pass: whoever ends it may hold all of
/// them. DeviceError then.
transport::Acquired acquire_block(transport::Device& device, std::size_t bytes);

/// The body of the operator: one copy per call, recorded under the operator of its worker.
template <class T>
class TransferBody {
 public:
  TransferBody(std::shared_ptr<transport::Device> device, BytesOf<T> bytes)
      : device_(std::move(device)), bytes_(std::move(bytes)) {}

  DeviceBatch<T> operator()(T&& batch) {
    DeviceBatch<T> made{std::make_unique<T>(std::move(batch)), {}, {}, {}, {}};
    const std::vector<transport::HostBytes> arrays = bytes_(*made.source);
    for (const transport::HostBytes& array : arrays) made.sizes.push_back(array.size());
    transport::Acquired acquired = acquire_block(*device_, transport::bytes_needed(arrays));
    transport::Copied copied = device_->copy(arrays, acquired.block);
    if (RecordedLoop* loop = RecordedLoop::here()) {
      if (recorder_ == nullptr) recorder_ = std::make_shared<transport::TransferRecorder>(loop->op());
      recorder_->copied(copied, acquired.waited_ns);
    }
    made.block = std::move(acquired.block);
    made.offsets = std::move(copied.offsets);
    made.completion = std::move(copied.completion);
    return made;
  }

 private:
  std::shared_ptr<transport::Device> device_;
  BytesOf<T> bytes_;
  std::shared_ptr<transport::TransferRecorder> recorder_;
};

}  // namespace headrace::pipeline
