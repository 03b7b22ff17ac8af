#include "headrace/transport/dlpack.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "headrace/profile/errors.h"

namespace headrace::transport {
namespace {

constexpr dlpack::DataType kFloat32{dlpack::kFloat, 32, 1};

/// A producer's tensor over numbers of the test.
struct Produced {
  std::vector<float> numbers;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  dlpack::ManagedTensor managed{};

  Produced(std::size_t length, std::vector<std::int64_t> of_shape, std::vector<std::int64_t> of_strides = {})
      : numbers(length), shape(std::move(of_shape)), strides(std::move(of_strides)) {
    for (std::size_t i = 0; i < length; ++i) numbers[i] = static_cast<float>(i);
    managed.tensor = {numbers.data(),
                      {dlpack::kCpu, 0},
                      static_cast<std::int32_t>(shape.size()),
                      kFloat32,
                      shape.data(),
                      strides.empty() ? nullptr : strides.data(),
                      0};
  }
  ImportedArray imported() const { return import_tensor(managed); }
  std::vector<float> compact() const {
    const ImportedArray array = imported();
    std::vector<float> copy(array.bytes / sizeof(float));
    copy_compact(array, reinterpret_cast<std::byte*>(copy.data()));
    return copy;
  }
};

std::string refusal(const dlpack::ManagedTensor& tensor) {
  try {
    import_tensor(tensor);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Dlpack, WhatGoesOutComesBack) {
  auto owner = std::make_shared<std::vector<float>>(24, 1.5F);
  const std::weak_ptr<void> alive = owner;
  ExportedArray array;
  array.data = owner->data();
  array.type = kFloat32;
  array.shape = {2, 3, 4};
  array.owner = std::move(owner);
  dlpack::ManagedTensor* const tensor = export_tensor(array);
  dlpack::ManagedTensorVersioned* const versioned = export_versioned(array);
  array.owner.reset();
  const ImportedArray one = import_tensor(*tensor);
  const ImportedArray other = import_tensor(*versioned);
  for (const ImportedArray& read : {one, other}) {
    EXPECT_EQ(read.shape, (std::vector<std::int64_t>{2, 3, 4}));
    EXPECT_EQ(read.strides, (std::vector<std::int64_t>{12, 4, 1}));
    EXPECT_EQ(read.type, kFloat32);
    EXPECT_EQ(read.bytes, 96U);
    EXPECT_TRUE(read.compact);
    EXPECT_FALSE(read.read_only);
    EXPECT_EQ(*reinterpret_cast<const float*>(read.data), 1.5F);
  }
  tensor->deleter(tensor);
  EXPECT_FALSE(alive.expired());
  versioned->deleter(versioned);
  EXPECT_TRUE(alive.expired());
}

TEST(Dlpack, ReadOnlyIsSaidInTheFlags) {
  ExportedArray array;
  array.read_only = true;
  array.shape = {0};
  dlpack::ManagedTensorVersioned* const tensor = export_versioned(array);
  EXPECT_EQ(tensor->flags, dlpack::kReadOnly);
  EXPECT_TRUE(import_tensor(*tensor).read_only);
  tensor->deleter(tensor);
  array.shape = {-1};
  EXPECT_THROW(export_tensor(array), UsageError);
  array.shape = {1LL << 40, 1LL << 40};
  EXPECT_THROW(export_tensor(array), UsageError);
}

TEST(Dlpack, AScalarHasOneElement) {
  const Produced scalar(1, {});
  EXPECT_EQ(scalar.imported().bytes, sizeof(float));
  EXPECT_EQ(scalar.compact(), std::vector<float>{0});
}

TEST(Dlpack, StridesOfEveryKindAreFollowed) {
  EXPECT_EQ(Produced(6, {2, 3}).compact(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  const Produced transposed(6, {3, 2}, {1, 3});
  EXPECT_FALSE(transposed.imported().compact);
  EXPECT_EQ(transposed.compact(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(Produced(6, {2, 2}, {4, 1}).compact(), (std::vector<float>{0, 1, 4, 5}));
  EXPECT_EQ(Produced(1, {3}, {0}).compact(), (std::vector<float>{0, 0, 0}));
  Produced backwards(4, {4}, {-1});
  backwards.managed.tensor.byte_offset = 3 * sizeof(float);
  EXPECT_EQ(backwards.compact(), (std::vector<float>{3, 2, 1, 0}));
  // A size of 1 may have any stride.
  EXPECT_TRUE(Produced(3, {1, 3}, {77, 1}).imported().compact);
}

TEST(Dlpack, NothingToCopyNeedsNoAddress) {
  Produced empty(0, {3, 0, 5});
  empty.managed.tensor.data = nullptr;
  EXPECT_EQ(empty.imported().bytes, 0U);
  empty.managed.tensor.shape[0] = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(empty.compact().empty());
}

TEST(Dlpack, DevicesThatAreUnderstood) {
  Produced tensor(2, {2});
  for (const int type : {1, 2, 3}) {
    tensor.managed.tensor.device = {type, 1};
    EXPECT_EQ(tensor.imported().device.type, type);
  }
  tensor.managed.tensor.device = {7, 0};
  EXPECT_NE(refusal(tensor.managed).find("device type 7"), std::string::npos);
  tensor.managed.tensor.device = {2, -1};
  EXPECT_NE(refusal(tensor.managed), "");
}

TEST(Dlpack, WhatCannotBeIsRefused) {
  using Break = void (*)(dlpack::Tensor&);
  const std::pair<const char*, Break> cases[] = {
      {"size below 0", [](dlpack::Tensor& t) { t.shape[0] = -1; }},
      {"size below 0", [](dlpack::Tensor& t) { t.shape[1] = std::numeric_limits<std::int64_t>::min(); }},
      {"dimensions", [](dlpack::Tensor& t) { t.ndim = -1; }},
      {"dimensions", [](dlpack::Tensor& t) { t.ndim = std::numeric_limits<std::int32_t>::max(); }},
      {"without a shape", [](dlpack::Tensor& t) { t.shape = nullptr; }},
      {"lanes", [](dlpack::Tensor& t) { t.dtype.lanes = 4; }},
      {"lanes", [](dlpack::Tensor& t) { t.dtype.lanes = 0; }},
      {"bits", [](dlpack::Tensor& t) { t.dtype.bits = 4; }},
      {"bits", [](dlpack::Tensor& t) { t.dtype.bits = 0; }},
      {"opaque", [](dlpack::Tensor& t) { t.dtype.code = dlpack::kOpaque; }},
      {"without an address", [](dlpack::Tensor& t) { t.data = nullptr; }},
      {"beyond memory", [](dlpack::Tensor& t) { t.byte_offset = std::numeric_limits<std::uint64_t>::max(); }},
      {"beyond memory",
       [](dlpack::Tensor& t) { t.strides[0] = std::numeric_limits<std::int64_t>::max() / 2; }},
      {"beyond memory", [](dlpack::Tensor& t) { t.strides[0] = std::numeric_limits<std::int64_t>::min(); }},
      {"more elements",
       [](dlpack::Tensor& t) { t.shape[0] = t.shape[1] = std::numeric_limits<std::int64_t>::max(); }},
  };
  for (const auto& [expected, damage] : cases) {
    Produced tensor(6, {2, 3}, {3, 1});
    damage(tensor.managed.tensor);
    const std::string message = refusal(tensor.managed);
    EXPECT_NE(message.find(expected), std::string::npos)
        << "expected '" << expected << "', not '" << message << "'";
  }
}

TEST(Dlpack, AnotherMajorVersionIsRefused) {
  ExportedArray none;
  none.shape = {0};
  dlpack::ManagedTensorVersioned* const tensor = export_versioned(none);
  tensor->version = {1, 99};
  import_tensor(*tensor);  // minor ones add nothing that must be understood
  tensor->version = {2, 0};
  EXPECT_THROW(import_tensor(*tensor), UsageError);
  tensor->deleter(tensor);
}

TEST(Dlpack, AnyBytesAreATensorOrARefusal) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    Produced tensor(6, {2, 3}, {3, 1});
    // All but the pointers, which only the producer knows.
    const auto odd = [&] { return static_cast<std::int64_t>(random() >> (random() % 64)); };
    dlpack::Tensor& one = tensor.managed.tensor;
    one.device = {static_cast<std::int32_t>(random() % 5), static_cast<std::int32_t>(odd())};
    one.ndim = static_cast<std::int32_t>(random() % 3);
    one.dtype = {static_cast<std::uint8_t>(random() % 8), static_cast<std::uint8_t>(random()),
                 static_cast<std::uint16_t>(random() % 2)};
    for (auto* list : {&tensor.shape, &tensor.strides}) {
      for (std::int64_t& number : *list) number = random() % 8 == 0 ? -odd() : odd();
    }
    one.byte_offset = static_cast<std::uint64_t>(odd());
    try {
      const ImportedArray read = import_tensor(tensor.managed);
      EXPECT_EQ(read.shape.size(), read.strides.size());
      EXPECT_LE(read.bytes, static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()));
    } catch (const UsageError&) {
      // Refused, in words.
    }
  }
}

}  // namespace
}  // namespace headrace::transport
