// The columns `rank device stream`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/table.h"

namespace headrace::analysis::device {

class StreamRows {
 public:
  void add(std::int64_t rank, const Stream& stream) {
    ranks_.push_back(rank);
    devices_.push_back(stream.device);
    streams_.push_back(stream.stream);
  }

  void reserve(std::size_t rows) {
    for (Integers* column : {&ranks_, &devices_, &streams_}) column->reserve(rows);
  }

  /// The first columns of `table`; leaves this empty.
  void put_into(Table& table) {
    table.add("rank", std::move(ranks_))
        .add("device", std::move(devices_))
        .add("stream", std::move(streams_));
  }

 private:
  Integers ranks_;
  Integers devices_;
  Integers streams_;
};

}  // namespace headrace::analysis::device
