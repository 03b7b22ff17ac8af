#include "headrace/pipeline/copy_to_device.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "headrace/pipeline/pipeline.h"
#include "headrace/profile/current.h"
#include "headrace/profile/snapshot.h"
#include "pipeline/numbers.h"

namespace headrace::pipeline {
namespace {

using Batch = std::vector<float>;

Batch batch_of(int number, std::size_t size) { return Batch(size, static_cast<float>(number)); }

TEST(Transfer, BatchesArriveOnTheDevice) {
  auto pipeline = source("numbers", numbers(20))
                      .map("load", [](int number) { return batch_of(number, 1000); })
                      .transfer(transport::open_device("cpu", {.buffers = 3}));
  int next = 0;
  while (auto batch = pipeline.next()) {
    batch->completion.wait();
    ASSERT_EQ(batch->sizes, (std::vector<std::size_t>{4000}));
    float value = 0;
    std::memcpy(&value, batch->host_data(0) + 3996, sizeof value);
    EXPECT_EQ(value, static_cast<float>(next++));
    EXPECT_NE(reinterpret_cast<const void*>(batch->host_data(0)), batch->source->data());
  }
  EXPECT_EQ(next, 20);
}

TEST(Transfer, ALoopThatHoldsEveryBufferCanStillEnd) {
  auto pipeline = source("numbers", numbers(100))
                      .map("load", [](int number) { return batch_of(number, 10); })
                      .transfer(transport::open_device("cpu", {.buffers = 2}));
  std::vector<DeviceBatch<Batch>> held;
  held.push_back(std::move(*pipeline.next()));
  held.push_back(std::move(*pipeline.next()));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  pipeline.finish();
  EXPECT_EQ(held.size(), 2U);
}

TEST(Transfer, NeedsADevice) {
  EXPECT_THROW(source("numbers", numbers(1))
                   .map("load", [](int number) { return batch_of(number, 1); })
                   .transfer(nullptr),
               UsageError);
}

TEST(Transfer, IsRecordedWithItsBytes) {
  const auto run = std::filesystem::temp_directory_path() / ("headrace-transfer-" + std::to_string(getpid()));
  const auto session = profile::CurrentSession::for_run(run, 0);
  {
    auto pipeline =
        source("numbers", numbers(60))
            .map("load", [](int number) { return batch_of(number, 10'000); })
            .transfer(transport::open_device("cpu", {.buffers = 4, .bandwidth = 10e6}), {.capacity = 2});
    while (auto batch = pipeline.next()) {
    }
    profile::SegmentImage image;
    image.read_memory(session->segment().data(), session->segment().size());
    const profile::Profile profile =
        profile::read_profile(image, static_cast<std::uint32_t>(pipeline.runtime().loader()->id()));
    ASSERT_EQ(profile.operators.size(), 3U);
    const profile::OperatorProfile& transfer = profile.operators[2];
    EXPECT_EQ(transfer.kind, profile::OperatorKind::transfer);
    ASSERT_TRUE(transfer.transfer.has_value());
    EXPECT_NEAR(static_cast<double>(transfer.transfer->bytes), 60 * 40'000, 8 * 40'000);
    EXPECT_LE(transfer.transfer->bytes_per_s.value_or(0), 10.5e6) << "no copy is faster than the bus";
    EXPECT_GT(transfer.transfer->bytes_per_s.value_or(0), 2e6);
    ASSERT_EQ(profile.queues.size(), 3U);
    EXPECT_EQ(profile.queues[2].from, "to_device");
    EXPECT_EQ(profile.queues[2].capacity, 2);
    double charged = 0;
    double all = 0;
    for (const auto& row : profile.stall_ledger) {
      all += row.seconds;
      if (row.op == "to_device") charged += row.seconds;
    }
    EXPECT_GT(charged, 0.5 * all);
  }
  profile::CurrentSession::close_all();
  std::filesystem::remove_all(run);
}

}  // namespace
}  // namespace headrace::pipeline
