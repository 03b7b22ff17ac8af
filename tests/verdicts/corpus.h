// Profiles that benchmarks/verdicts/run.py recorded live, with the verdict that each must get.
#pragma once

#include <algorithm>
#include <filesystem>
#include <vector>

namespace headrace::analysis {

inline std::vector<std::filesystem::path> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(HEADRACE_TESTS_DIR "/verdicts/corpus")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace headrace::analysis
