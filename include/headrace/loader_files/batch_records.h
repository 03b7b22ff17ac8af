// What MindData notes for every batch: device_queue_profiling_<rank>.txt where a thread feeds a device's queue
// (sink mode), dataset_iterator_profiling_<rank>.txt where the training loop takes batches itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::loader_files {

/// One batch. Times are whole milliseconds, cut, not rounded.
struct BatchRecord {
  std::int64_t batch = 0;                ///< from 1 on
  std::optional<double> wait_ms;         ///< until the pipeline gave it
  std::optional<double> push_ms;         ///< until it was in the device's queue
  std::optional<double> total_ms;        ///< both, and what lay between
  std::optional<double> end_ms;          ///< when that was over; a clock that only grows
  std::optional<std::int64_t> capacity;  ///< of the queue that it was taken from: the host queue
  std::optional<std::int64_t> level;     ///< of that queue, in batches
};

struct BatchRecords {
  std::vector<BatchRecord> batches;  ///< by their ends where all have one, else as in the file
  bool has_times = false;            ///< the oldest files have the queue's levels only
  std::vector<std::string> notes;
};

/// From the text of either file: five whole numbers a line (`type extra batch value time`), four in the oldest
/// form. A last line that was cut off is left out and noted. FormatError where no line can be read.
BatchRecords read_batch_records(std::string_view text, const std::string& path);

}  // namespace headrace::loader_files
