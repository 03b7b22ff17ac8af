// One array of a batch that was copied to a device, and its access by other libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/transport/device.h"
#include "headrace/transport/dlpack.h"

namespace headrace::transport {

/// The block of one batch, shared by its arrays: it goes back to the device with the last of them, after the
/// streams on which they were read. Thread-safe.
class Lease {
 public:
  Lease(std::shared_ptr<Device> device, Block block, Completion completion)
      : device_(std::move(device)), block_(std::move(block)), completion_(std::move(completion)) {}
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Device& device() const noexcept { return *device_; }
  const Block& block() const noexcept { return block_; }
  const Completion& completion() const noexcept { return completion_; }

  /// The batch is going to be read on this stream of the device: its work from now on waits for the copy, and
  /// the block for its work.
  void read_on(void* stream);

 private:
  std::shared_ptr<Device> device_;
  Block block_;
  Completion completion_;
  std::mutex mutex_;
  std::vector<void*> streams_;
};

/// The element type of an array, in the format of Python's buffer protocol (struct module, PEP 3118).
struct ElementType {
  std::string format = "B";
  std::size_t bytes = 1;

  /// False if DLPack has no code for it (records, dates, foreign byte order).
  bool as_dlpack(dlpack::DataType& type) const noexcept;
  /// Raises UsageError if the buffer protocol has no word for it (bfloat16).
  static ElementType of(const dlpack::DataType& type);
};

/// A view into a leased block, compact, the last index fastest. Copies of it are the same array.
struct DeviceArray {
  std::shared_ptr<Lease> lease;
  std::size_t offset = 0;
  std::vector<std::int64_t> shape;
  ElementType type;

  std::byte* data() const noexcept { return lease->block().data() + offset; }
  std::size_t bytes() const noexcept;
  dlpack::Device dlpack_device() const noexcept;

  /// Raises UsageError where DLPack cannot say what the elements are. `copy`: into memory of its own, which
  /// host memory alone can.
  ExportedArray exported(bool copy = false) const;
  /// In host memory, complete.
  std::vector<std::byte> read_back() const;
};

}  // namespace headrace::transport
