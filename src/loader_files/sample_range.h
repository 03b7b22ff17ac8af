// Which samples of the queues are of the steady part of the run.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "headrace/loader_files/rank_files.h"

namespace headrace::loader_files {

struct SampleRange {
  std::size_t begin = 0;
  std::size_t end = 0;  ///< behind the last one
  /// The moment of each sample of the file, where the CPU file has them; else empty.
  std::vector<double> stamps_ms;

  std::size_t size() const noexcept { return end - begin; }
};

/// After the first batch, up to the last one, and up to where the source ran dry at the end.
SampleRange steady_samples(const RankFiles& files);

}  // namespace headrace::loader_files
