// How a rank of a parallel job spent its steps: ascend_cluster_analyse_<mode>_<stages>_<ranks>_<rank>.csv.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::loader_files {

/// What the file's name says.
struct ParallelPlace {
  std::string mode;  ///< "data-parallel", "model-parallel" or "pipeline-parallel"
  int stages = 1;
  int ranks = 1;
  int rank = 0;

  /// From 1 on: ranks of a stage follow each other.
  int stage() const noexcept;
};

/// Empty for a file of another name.
std::optional<ParallelPlace> parallel_place(std::string_view file_name);

struct ParallelStepsFile {
  std::vector<std::string> columns;            ///< "computation_time"; times in milliseconds
  std::vector<std::vector<double>> steps;      ///< in the order of `columns`; NaN: no number
  std::optional<std::vector<double>> average;  ///< the file's last row; empty where it is the only one
};

/// From the text of the table. FormatError for a file without a heading.
ParallelStepsFile read_parallel_steps(std::string_view text, const std::string& path);

}  // namespace headrace::loader_files
