// The folders that the Ascend profilers of PyTorch and MindSpore write.
//
//     for (const auto& profile : headrace::trace::ascend::find_profiles("profiles/"))
//       std::cout << profile.rank.value_or(-1) << ": " << profile.events_file() << '\n';
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headrace::trace::ascend {

/// One `*_ascend_pt` or `*_ascend_ms` folder: what one rank recorded. Paths that do not exist are empty.
struct ProfileFolder {
  std::string path;
  /// Where tables and traces are: `ASCEND_PROFILER_OUTPUT`, or `path` itself.
  std::string output;
  /// From the name of `profiler_info_N.json`, else from what that file says, else from the database's name.
  std::optional<std::int64_t> rank;
  std::string trace_view;
  std::string database;
  /// `analysis.db` or `communication_analyzer.db`: tables about communication and steps.
  std::string analysis_database;
  std::string info;
  std::string metadata;

  /// The file with the events: the JSON if there is one, because the database leaves some of them out. Empty
  /// if the folder has neither.
  const std::string& events_file() const noexcept { return trace_view.empty() ? database : trace_view; }
};

/// Profiles at `path` (a profile's folder or its `ASCEND_PROFILER_OUTPUT`) or up to three folders below it, by
/// rank and then by path; empty if there is none. Folders that cannot be read count as empty. At most 100,000
/// entries are looked at.
std::vector<ProfileFolder> find_profiles(const std::string& path);

/// The profile that a trace or a table file belongs to, nothing if it lies in no such folder.
std::optional<ProfileFolder> profile_of(const std::string& file);

/// The number at the end of `<folder>/..._profiler_N.db`, nothing for other names.
std::optional<std::int64_t> rank_of_database(const std::string& file);

}  // namespace headrace::trace::ascend
