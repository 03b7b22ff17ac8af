// Arrays in and out of other libraries without a copy, by the DLPack protocol.
//
// The structs are those of the DLPack specification (dmlc/dlpack, dlpack.h): DLManagedTensor as versions up
// to 0.8 have it, DLManagedTensorVersioned as since 1.0. They are an ABI: the layout is checked in dlpack.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace headrace::transport {

namespace dlpack {

enum DeviceType : std::int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3 };
enum TypeCode : std::uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kOpaque = 3,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6
};
enum Flag : std::uint64_t { kReadOnly = 1, kCopied = 2, kPaddedSubByte = 4 };

struct Device {
  std::int32_t type;
  std::int32_t id;
};

/// One element: `lanes` values of `bits` bits.
struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
  bool operator==(const DataType&) const = default;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  ///< in elements; null: compact, the last index fastest
  std::uint64_t byte_offset;
};

struct ManagedTensor {  ///< DLManagedTensor; the capsule is named "dltensor", "used_dltensor" once taken
  Tensor tensor;
  void* manager_ctx;
  void (*deleter)(ManagedTensor* self);
};

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

struct ManagedTensorVersioned {  ///< DLManagedTensorVersioned; "dltensor_versioned",
                                 ///< "used_dltensor_versioned"
  Version version;
  void* manager_ctx;
  void (*deleter)(ManagedTensorVersioned* self);
  std::uint64_t flags;
  Tensor tensor;
};

inline constexpr Version kVersion = {1, 0};

}  // namespace dlpack

/// An array in memory that `owner` keeps alive.
struct ExportedArray {
  void* data = nullptr;
  dlpack::Device device = {dlpack::kCpu, 0};
  dlpack::DataType type = {dlpack::kUInt, 8, 1};
  std::vector<std::int64_t> shape;  ///< compact, the last index fastest
  bool read_only = false;
  std::shared_ptr<void> owner;
};

/// A tensor whose deleter releases the owner and itself; any thread may call it. Raises UsageError for a
/// shape with a negative size.
dlpack::ManagedTensor* export_tensor(ExportedArray array);
dlpack::ManagedTensorVersioned* export_versioned(ExportedArray array);

/// A producer's tensor after all of it was found possible.
struct ImportedArray {
  std::byte* data = nullptr;  ///< the first element, byte offset applied; null if there are no elements
  dlpack::Device device = {dlpack::kCpu, 0};
  dlpack::DataType type = {dlpack::kUInt, 8, 1};
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< in elements, as many as the shape has
  std::size_t element_bytes = 0;
  std::size_t bytes = 0;  ///< of all elements
  bool compact = true;    ///< they lie one after the other, the last index fastest
  bool read_only = false;
};

/// Validates everything: raises UsageError, with the reason, for a tensor with negative sizes, more than 64
/// dimensions, elements of no whole bytes, several lanes, missing pointers, an address or a size that wraps
/// around, a device that is neither host memory nor CUDA, or a version that is not understood. What the
/// memory contains, and whether it exists, only the producer knows.
ImportedArray import_tensor(const dlpack::ManagedTensor& tensor);
ImportedArray import_tensor(const dlpack::ManagedTensorVersioned& tensor);

/// Copies the elements of an array in host memory one after the other, the last index fastest, to `to`, which
/// has room for `array.bytes`.
void copy_compact(const ImportedArray& array, std::byte* to) noexcept;

}  // namespace headrace::transport
