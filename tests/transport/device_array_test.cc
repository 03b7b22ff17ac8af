#include "headrace/transport/device_array.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "headrace/profile/errors.h"
#include "headrace/transport/host_device.h"

namespace headrace::transport {
namespace {

/// Two arrays of floats in one block of a host device.
struct Batch {
  std::shared_ptr<HostDevice> device = std::make_shared<HostDevice>(DeviceOptions{.buffers = 1});
  std::vector<float> first = std::vector<float>(6, 1.5F);
  std::vector<float> second = std::vector<float>(2, 2.5F);
  std::vector<DeviceArray> arrays;
  Batch() {
    const HostBytes bytes[] = {std::as_bytes(std::span(first)), std::as_bytes(std::span(second))};
    Acquired acquired = device->acquire(bytes_needed(bytes));
    const Copied copied = device->copy(bytes, acquired.block);
    const auto lease = std::make_shared<Lease>(device, std::move(acquired.block), copied.completion);
    arrays = {{lease, copied.offsets[0], {2, 3}, {"f", 4}}, {lease, copied.offsets[1], {2}, {"<f", 4}}};
  }
};

TEST(DeviceArray, TheBlockGoesBackWithTheLastArray) {
  Batch batch;
  DeviceArray kept = batch.arrays[1];
  batch.arrays.clear();
  EXPECT_EQ(batch.device->free_buffers(), 0U);
  EXPECT_EQ(*reinterpret_cast<const float*>(kept.data()), 2.5F);
  kept = {};
  EXPECT_EQ(batch.device->free_buffers(), 1U);
}

TEST(DeviceArray, ADlpackTensorKeepsTheBlock) {
  Batch batch;
  dlpack::ManagedTensor* const tensor = export_tensor(batch.arrays[0].exported());
  batch.arrays.clear();
  const ImportedArray read = import_tensor(*tensor);
  EXPECT_EQ(read.bytes, 24U);
  EXPECT_EQ(reinterpret_cast<const float*>(read.data)[5], 1.5F);
  EXPECT_EQ(batch.device->free_buffers(), 0U);
  tensor->deleter(tensor);
  EXPECT_EQ(batch.device->free_buffers(), 1U);
}

TEST(DeviceArray, ACopyIsTheConsumersOwn) {
  Batch batch;
  const ExportedArray copy = batch.arrays[1].exported(true);
  EXPECT_NE(copy.data, batch.arrays[1].data());
  batch.arrays.clear();
  EXPECT_EQ(batch.device->free_buffers(), 1U);
  EXPECT_EQ(static_cast<const float*>(copy.data)[1], 2.5F);
}

TEST(DeviceArray, ReadsBack) {
  const Batch batch;
  const std::vector<std::byte> bytes = batch.arrays[0].read_back();
  ASSERT_EQ(bytes.size(), 24U);
  EXPECT_EQ(std::memcmp(bytes.data(), batch.first.data(), 24), 0);
}

TEST(DeviceArray, HostMemoryIsReadOnNoStream) {
  Batch batch;
  batch.arrays[0].lease->read_on(nullptr);
  batch.arrays.clear();
  EXPECT_EQ(batch.device->free_buffers(), 1U);
}

TEST(ElementType, BothProtocolsHaveAWordForNumbers) {
  const std::pair<const char*, std::size_t> words[] = {{"?", 1}, {"b", 1}, {"B", 1},  {"h", 2},  {"H", 2},
                                                       {"i", 4}, {"I", 4}, {"q", 8},  {"Q", 8},  {"e", 2},
                                                       {"f", 4}, {"d", 8}, {"Zf", 8}, {"Zd", 16}};
  for (const auto& [format, bytes] : words) {
    dlpack::DataType type{};
    ASSERT_TRUE((ElementType{format, bytes}.as_dlpack(type))) << format;
    EXPECT_EQ(ElementType::of(type).format, format);
    EXPECT_EQ(ElementType::of(type).bytes, bytes);
  }
}

TEST(ElementType, LongIsAsLongAsItSays) {
  dlpack::DataType type{};
  ASSERT_TRUE((ElementType{"l", 8}.as_dlpack(type)));
  EXPECT_EQ(type.bits, 64);
  ASSERT_TRUE((ElementType{"<l", 4}.as_dlpack(type)));
  EXPECT_EQ(type.bits, 32);
}

TEST(ElementType, WhatOnlyOneProtocolKnowsIsRefused) {
  dlpack::DataType type{};
  EXPECT_FALSE((ElementType{">i", 4}.as_dlpack(type)));
  EXPECT_FALSE((ElementType{"T{i:a:f:b:}", 8}.as_dlpack(type)));
  EXPECT_FALSE((ElementType{"", 1}.as_dlpack(type)));
  EXPECT_THROW(ElementType::of({dlpack::kBfloat, 16, 1}), UsageError);
  Batch batch;
  batch.arrays[0].type = {"10s", 10};
  EXPECT_THROW(batch.arrays[0].exported(), UsageError);
}

}  // namespace
}  // namespace headrace::transport
