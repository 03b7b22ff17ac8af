// When the device asked for a batch, and how many were in its queue then: minddata_aicpu_<rank>.txt (Ascend)
// or minddata_getnext_profiling_<rank>.txt (GPU).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::loader_files {

struct GetNext {
  std::string node;        ///< "GetNext_dequeue_wait"
  double start_s = 0;      ///< on the device's clock
  double end_s = 0;        ///< not before start_s
  std::int64_t level = 0;  ///< batches in the data queue, the one on the device
};

enum class DeviceTicks : std::uint8_t {
  microseconds,  ///< Ascend
  nanoseconds,   ///< GPU
};

struct GetNextFile {
  std::vector<GetNext> calls;  ///< by start
  std::vector<std::string> notes;
};

/// From the text of one of the files: `node start end level` a line. Only nodes whose names begin with GetNext
/// count; other lines of the file are left out. FormatError where there is none.
GetNextFile read_getnext(std::string_view text, DeviceTicks ticks, const std::string& path);

/// From the text of a raw file of the Ascend profiler, DATA_PREPROCESS*.AICPUMI*: records between zero bytes,
///
///     Node:GetNext_dequeue_wait, Run start:154907895305, Run end:154907895306, queue size:3
///
/// in any order behind the name; times are microseconds. FormatError where no record is a GetNext call.
GetNextFile read_raw_getnext(std::string_view text, const std::string& path);

}  // namespace headrace::loader_files
