// What one rank's data-preparation files say, all of them read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/loader_files/batch_records.h"
#include "headrace/loader_files/cpu_file.h"
#include "headrace/loader_files/getnext_file.h"
#include "headrace/loader_files/pipeline_file.h"
#include "headrace/loader_files/pipeline_summary_file.h"
#include "headrace/loader_files/profiler_folder.h"
#include "headrace/loader_files/step_trace_file.h"

namespace headrace::loader_files {

struct RankFiles {
  int rank = 0;
  int ranks_beside = 1;  ///< ranks in the folder, this one included
  std::optional<PipelineFile> pipeline;
  std::optional<PipelineSummaryFile> summary;    ///< what MindSpore itself made of its samples
  std::optional<BatchRecords> device_queue;      ///< sink mode
  std::optional<BatchRecords> dataset_iterator;  ///< the loop takes batches itself
  std::optional<GetNextFile> getnext;
  std::optional<CpuFile> cpu;
  std::optional<StepTraceFile> steps;
  std::optional<StepPoints> points;
  bool has_device = false;         ///< a file of the rank was written by a device's profiler
  std::vector<std::string> notes;  ///< what is missing or could not be read, with the file's name

  /// The records of the host queue: of sink mode if they are there.
  const BatchRecords* batches() const noexcept {
    return device_queue ? &*device_queue : dataset_iterator ? &*dataset_iterator : nullptr;
  }
  bool in_sink_mode() const noexcept { return device_queue || getnext; }
};

/// Reads every file of the rank that it knows. One that is damaged is noted, and the others are still read.
/// FormatError where all of them are, Error where the rank has none. Thread-safe.
RankFiles read_rank(const RankFolder& folder);

}  // namespace headrace::loader_files
