// What one round of MindData's AutoTune would change, given these samples (docs/mindspore.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/loader_files/rank_files.h"

namespace headrace::analysis {

struct AutoTuneRequest {
  std::int64_t id = 0;
  std::string type;
  bool workers = false;  ///< num_parallel_workers; else prefetch_size
  std::int64_t from = 0;
  std::int64_t to = 0;  ///< may equal `from`, where the number of cores is reached

  /// "MapOp(ID:1) num_parallel_workers 1 -> 2".
  std::string text() const;
};

struct AutoTuneRound {
  std::optional<double> connector_utilisation;  ///< of the host queue; empty: its levels are not known
  bool is_bottleneck = false;                   ///< below 0.75
  std::vector<AutoTuneRequest> requests;        ///< leaf first
};

/// Thread-safe; never fails.
AutoTuneRound autotune_round(const loader_files::RankFiles& files);

}  // namespace headrace::analysis
