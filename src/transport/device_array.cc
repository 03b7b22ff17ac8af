#include "headrace/transport/device_array.h"

#include <algorithm>
#include <array>

#include "headrace/profile/errors.h"

namespace headrace::transport {
namespace {

struct Word {
  std::string_view format;
  std::size_t bytes;
  dlpack::TypeCode code;
};

/// 'l' and 'L' have 8 bytes where native sizes are meant, and 4 elsewhere: the size that comes with the
/// format decides, so both have their row.
constexpr std::array<Word, 18> kWords{{{"?", 1, dlpack::kBool},
                                       {"B", 1, dlpack::kUInt},
                                       {"H", 2, dlpack::kUInt},
                                       {"I", 4, dlpack::kUInt},
                                       {"Q", 8, dlpack::kUInt},
                                       {"L", 8, dlpack::kUInt},
                                       {"L", 4, dlpack::kUInt},
                                       {"c", 1, dlpack::kUInt},
                                       {"b", 1, dlpack::kInt},
                                       {"h", 2, dlpack::kInt},
                                       {"i", 4, dlpack::kInt},
                                       {"q", 8, dlpack::kInt},
                                       {"l", 8, dlpack::kInt},
                                       {"l", 4, dlpack::kInt},
                                       {"e", 2, dlpack::kFloat},
                                       {"f", 4, dlpack::kFloat},
                                       {"d", 8, dlpack::kFloat},
                                       {"Zf", 8, dlpack::kComplex}}};
constexpr Word kDoubleComplex{"Zd", 16, dlpack::kComplex};

/// The format without the mark of a byte order that is this machine's.
std::string_view native(std::string_view format) {
  if (!format.empty() && (format[0] == '@' || format[0] == '=' || format[0] == '<')) format.remove_prefix(1);
  return format;
}

}  // namespace

// --- lease ---

Lease::~Lease() {
  try {
    device_->give_back_after(std::move(block_), streams_);
  } catch (const Error&) {
    // The device is lost; the block went back without a fence, and no copy into it will succeed.
  }
}

void Lease::read_on(void* stream) {
  device_->make_stream_wait(stream, completion_);
  const std::scoped_lock lock(mutex_);
  if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) streams_.push_back(stream);
}

// --- element ---

bool ElementType::as_dlpack(dlpack::DataType& type) const noexcept {
  const auto take = [&](const Word& word) {
    if (word.format != native(format) || word.bytes != bytes) return false;
    type = {word.code, static_cast<std::uint8_t>(bytes * 8), 1};
    return true;
  };
  return std::any_of(kWords.begin(), kWords.end(), take) || take(kDoubleComplex);
}

ElementType ElementType::of(const dlpack::DataType& type) {
  const auto is = [&](const Word& word) { return word.code == type.code && word.bytes * 8 == type.bits; };
  const auto word = std::find_if(kWords.begin(), kWords.end(), is);
  if (word != kWords.end()) return {std::string(word->format), word->bytes};
  if (is(kDoubleComplex)) return {std::string(kDoubleComplex.format), kDoubleComplex.bytes};
  throw UsageError("DLPack: elements of type " + std::to_string(type.code) + " with " +
                   std::to_string(type.bits) +
                   " bits have no name in the buffer protocol: view them as bytes");
}

// --- array ---

std::size_t DeviceArray::bytes() const noexcept {
  std::size_t product = type.bytes;
  for (const std::int64_t size : shape) product *= static_cast<std::size_t>(size);
  return product;
}

dlpack::Device DeviceArray::dlpack_device() const noexcept {
  return {static_cast<std::int32_t>(lease->device().memory_kind()), lease->device().index()};
}

ExportedArray DeviceArray::exported(bool copy) const {
  ExportedArray array;
  if (!type.as_dlpack(array.type))
    throw UsageError("DLPack has no word for elements of format '" + type.format + "'");
  array.device = dlpack_device();
  array.shape = shape;
  array.data = data();
  array.owner = lease;
  if (copy) {
    if (array.device.type != dlpack::kCpu) throw UsageError("DLPack: copies on a device are the consumer's");
    auto own = std::make_shared<std::vector<std::byte>>(read_back());
    array.data = own->data();
    array.owner = std::move(own);
  }
  return array;
}

std::vector<std::byte> DeviceArray::read_back() const {
  std::vector<std::byte> host(bytes());
  lease->completion().wait();
  lease->device().read_back(host, lease->block(), offset);
  return host;
}

}  // namespace headrace::transport
