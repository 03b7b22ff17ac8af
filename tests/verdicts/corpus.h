// Recorded profiles with the verdict that each must get: of benchmarks/verdicts/run.py, of `make record-cases`.
#pragma once

#include <algorithm>
#include <filesystem>
#include <vector>

#include "support/tests_folder.h"

namespace headrace::analysis {

/// The files of tests/verdicts/`folder`, sorted.
inline std::vector<std::filesystem::path> recorded(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path verdicts = std::filesystem::path(kTestsFolder) / "verdicts";
  for (const auto& entry : std::filesystem::directory_iterator(verdicts / folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline std::vector<std::filesystem::path> corpus() { return recorded("corpus"); }

}  // namespace headrace::analysis
