#include "headrace/transport/dlpack.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "headrace/profile/errors.h"

namespace headrace::transport {
namespace {

// The ABI of 64-bit systems, as a C compiler lays out the specification's structs.
static_assert(sizeof(dlpack::Tensor) == 48 && offsetof(dlpack::Tensor, byte_offset) == 40);
static_assert(offsetof(dlpack::Tensor, ndim) == 16 && offsetof(dlpack::Tensor, dtype) == 20);
static_assert(sizeof(dlpack::ManagedTensor) == 64 && offsetof(dlpack::ManagedTensor, deleter) == 56);
static_assert(sizeof(dlpack::ManagedTensorVersioned) == 80);
static_assert(offsetof(dlpack::ManagedTensorVersioned, flags) == 24);

__extension__ using int128 = __int128;  // sums of addresses and strides that no 64 bits hold

constexpr int kMaxDimensions = 64;
constexpr std::size_t kLargestTensor = std::numeric_limits<std::ptrdiff_t>::max();

[[noreturn]] void refuse(const std::string& what) { throw UsageError("DLPack: " + what); }

/// False if the product does not fit.
bool multiply(std::size_t& product, std::size_t factor) {
  return !__builtin_mul_overflow(product, factor, &product) && product <= kLargestTensor;
}

// --- out ---

/// A managed tensor with what it points to.
template <class Managed>
struct Exported {
  Managed managed{};
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::shared_ptr<void> owner;
};

template <class Managed>
Managed* exported(ExportedArray array) {
  auto holder = std::make_unique<Exported<Managed>>();
  holder->shape = std::move(array.shape);
  holder->owner = std::move(array.owner);
  // Written out although they say nothing: consumers exist that do not take null, and 1.2 asks for them.
  holder->strides.assign(holder->shape.size(), 1);
  std::size_t step = 1;
  for (std::size_t i = holder->shape.size(); i-- > 0;) {
    if (holder->shape[i] < 0) refuse("a size below 0");
    holder->strides[i] = static_cast<std::int64_t>(step);
    if (!multiply(step, static_cast<std::size_t>(std::max<std::int64_t>(1, holder->shape[i]))))
      refuse("more elements than memory can have");
  }
  dlpack::Tensor& tensor = holder->managed.tensor;
  tensor.data = array.data;
  tensor.device = array.device;
  tensor.ndim = static_cast<std::int32_t>(holder->shape.size());
  tensor.dtype = array.type;
  tensor.shape = holder->shape.data();
  tensor.strides = holder->strides.data();
  tensor.byte_offset = 0;
  holder->managed.manager_ctx = holder.get();
  holder->managed.deleter = [](Managed* self) {
    if (self != nullptr) delete static_cast<Exported<Managed>*>(self->manager_ctx);
  };
  if constexpr (std::is_same_v<Managed, dlpack::ManagedTensorVersioned>) {
    holder->managed.version = dlpack::kVersion;
    holder->managed.flags = array.read_only ? std::uint64_t{dlpack::kReadOnly} : 0;
  }
  return &holder.release()->managed;
}

// --- in ---

std::size_t checked_element(const dlpack::DataType& type) {
  if (type.lanes != 1) refuse("elements of " + std::to_string(type.lanes) + " lanes; 1 is understood");
  if (type.bits == 0 || type.bits % 8 != 0)
    refuse("elements of " + std::to_string(type.bits) + " bits; whole bytes are understood");
  if (type.code == dlpack::kOpaque) refuse("opaque handles cannot be copied");
  return type.bits / 8;
}

void checked_device(const dlpack::Device& device) {
  if (device.type != dlpack::kCpu && device.type != dlpack::kCuda && device.type != dlpack::kCudaHost)
    refuse("memory of device type " + std::to_string(device.type) + "; host memory and CUDA are understood");
  if (device.id < 0) refuse("a device number below 0");
}

/// Lowest and highest element, relative to the first one, in elements. Negative strides are legal.
std::pair<std::int64_t, std::int64_t> reach(const ImportedArray& array) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (std::size_t i = 0; i < array.shape.size(); ++i) {
    std::int64_t extent = 0;
    std::int64_t& end = array.strides[i] < 0 ? low : high;
    if (__builtin_mul_overflow(array.shape[i] - 1, array.strides[i], &extent) ||
        __builtin_add_overflow(end, extent, &end))
      refuse("strides that reach beyond memory");
  }
  return {low, high};
}

bool is_compact(const ImportedArray& array) {
  std::int64_t step = 1;
  for (std::size_t i = array.shape.size(); i-- > 0;) {
    if (array.shape[i] != 1 && array.strides[i] != step) return false;
    step *= array.shape[i];  // the number of elements fits, it was checked
  }
  return true;
}

ImportedArray imported(const dlpack::Tensor& tensor) {
  ImportedArray array;
  checked_device(tensor.device);
  array.device = tensor.device;
  array.type = tensor.dtype;
  array.element_bytes = checked_element(tensor.dtype);
  if (tensor.ndim < 0 || tensor.ndim > kMaxDimensions)
    refuse(std::to_string(tensor.ndim) + " dimensions; 0 to " + std::to_string(kMaxDimensions) +
           " are understood");
  if (tensor.ndim > 0 && tensor.shape == nullptr) refuse("dimensions without a shape");
  const auto dimensions = static_cast<std::size_t>(tensor.ndim);
  array.shape.assign(tensor.shape, tensor.shape + dimensions);
  bool empty = false;
  for (const std::int64_t size : array.shape) {
    if (size < 0) refuse("a size below 0");
    empty |= size == 0;
  }
  array.bytes = empty ? 0 : array.element_bytes;
  for (const std::int64_t size : array.shape) {
    if (!empty && !multiply(array.bytes, static_cast<std::size_t>(size)))
      refuse("more elements than memory can have");
  }
  if (tensor.strides != nullptr) {
    array.strides.assign(tensor.strides, tensor.strides + dimensions);
  } else {
    array.strides.assign(dimensions, 1);
    for (std::size_t i = dimensions; i-- > 1;)
      array.strides[i - 1] = empty ? 1 : array.strides[i] * array.shape[i];
  }
  if (empty) return array;
  if (tensor.data == nullptr) refuse("elements without an address");
  // Both ends of what the strides reach must be addresses.
  const auto [low, high] = reach(array);
  const auto address =
      static_cast<int128>(reinterpret_cast<std::uintptr_t>(tensor.data)) + tensor.byte_offset;
  const auto element = static_cast<int128>(array.element_bytes);
  const int128 first = address + low * element;
  const int128 last = address + (high + static_cast<int128>(1)) * element;
  if (first <= 0 || last > static_cast<int128>(std::numeric_limits<std::ptrdiff_t>::max()))
    refuse("an address beyond memory");
  array.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  array.compact = is_compact(array);
  return array;
}

void copy_dimension(const ImportedArray& array, std::size_t dimension, const std::byte* from,
                    std::byte*& to) noexcept {
  if (dimension == array.shape.size()) {
    std::memcpy(to, from, array.element_bytes);
    to += array.element_bytes;
    return;
  }
  const auto size = static_cast<std::size_t>(array.shape[dimension]);
  const bool last = dimension + 1 == array.shape.size();
  if (last && array.strides[dimension] == 1) {
    std::memcpy(to, from, size * array.element_bytes);
    to += size * array.element_bytes;
    return;
  }
  // The stride of a single element is never gone, and may be any number.
  const std::int64_t step =
      size < 2 ? 0 : array.strides[dimension] * static_cast<std::int64_t>(array.element_bytes);
  for (std::size_t i = 0; i < size; ++i)
    copy_dimension(array, dimension + 1, from + static_cast<std::int64_t>(i) * step, to);
}

}  // namespace

dlpack::ManagedTensor* export_tensor(ExportedArray array) {
  return exported<dlpack::ManagedTensor>(std::move(array));
}

dlpack::ManagedTensorVersioned* export_versioned(ExportedArray array) {
  return exported<dlpack::ManagedTensorVersioned>(std::move(array));
}

ImportedArray import_tensor(const dlpack::ManagedTensor& tensor) { return imported(tensor.tensor); }

ImportedArray import_tensor(const dlpack::ManagedTensorVersioned& tensor) {
  if (tensor.version.major != dlpack::kVersion.major) {
    refuse("version " + std::to_string(tensor.version.major) + "." + std::to_string(tensor.version.minor) +
           "; 1.x is understood");
  }
  ImportedArray array = imported(tensor.tensor);
  array.read_only = (tensor.flags & dlpack::kReadOnly) != 0;
  return array;
}

void copy_compact(const ImportedArray& array, std::byte* to) noexcept {
  if (array.bytes == 0) return;
  if (array.compact) {
    std::memcpy(to, array.data, array.bytes);
  } else {
    copy_dimension(array, 0, array.data, to);
  }
}

}  // namespace headrace::transport
