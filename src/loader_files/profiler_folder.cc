#include "headrace/loader_files/profiler_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "headrace/profile/errors.h"
#include "text_file.h"

namespace headrace::loader_files {
namespace {

namespace fs = std::filesystem;

/// Entries of a folder that are looked at: a profile of 10,000 ranks has some hundred thousand.
constexpr std::size_t kMaxEntries = 1'000'000;
constexpr std::size_t kMaxFolders = 4096;
constexpr std::int64_t kHighestRank = 1 << 24;

/// A file's name is `before`, the rank, `after`.
struct Name {
  FileKind kind;
  std::string_view before;
  std::string_view after;
};

constexpr std::array kNames{
    Name{FileKind::pipeline_profiling, "pipeline_profiling_", ".json"},
    Name{FileKind::pipeline_table, "minddata_pipeline_raw_", ".csv"},
    Name{FileKind::pipeline_summary, "minddata_pipeline_summary_", ".json"},
    Name{FileKind::pipeline_summary_table, "minddata_pipeline_summary_", ".csv"},
    Name{FileKind::device_queue, "device_queue_profiling_", ".txt"},
    Name{FileKind::dataset_iterator, "dataset_iterator_profiling_", ".txt"},
    Name{FileKind::getnext_ascend, "minddata_aicpu_", ".txt"},
    Name{FileKind::getnext_gpu, "minddata_getnext_profiling_", ".txt"},
    Name{FileKind::cpu, "minddata_cpu_utilization_", ".json"},
    Name{FileKind::step_trace, "step_trace_raw_", "_detail_time.csv"},
    Name{FileKind::step_points, "step_trace_point_info_", ".json"},
    Name{FileKind::aicore_types, "aicore_intermediate_", "_type.csv"},
    Name{FileKind::aicore_details, "aicore_intermediate_", "_detail.csv"},
    Name{FileKind::aicpu, "aicpu_intermediate_", ".csv"},
    Name{FileKind::framework, "framework_raw_", ".csv"},
    Name{FileKind::flops, "flops_", ".txt"},
    Name{FileKind::flops_summary, "flops_summary_", ".json"},
    Name{FileKind::gpu_types, "gpu_op_type_info_", ".csv"},
    Name{FileKind::gpu_details, "gpu_op_detail_info_", ".csv"},
    Name{FileKind::gpu_activity, "gpu_activity_data_", ".csv"},
    Name{FileKind::cpu_types, "cpu_op_type_info_", ".csv"},
    Name{FileKind::cpu_details, "cpu_op_detail_info_", ".csv"},
    Name{FileKind::memory_summary, "memory_usage_summary_", ".json"},
    Name{FileKind::memory_details, "memory_usage_details_", ".json"},
    Name{FileKind::timeline, "ascend_timeline_display_", ".json"},
    Name{FileKind::timeline, "gpu_timeline_display_", ".json"},
    Name{FileKind::collectives, "hccl_raw_", ".csv"},
    Name{FileKind::dataset, "dataset_", ".csv"},
    Name{FileKind::host_info, "host_info_", ".csv"},
};

/// Of all ranks in old versions.
constexpr std::string_view kSharedPoints = "step_trace_point_info.json";

std::optional<std::int64_t> rank_in(std::string_view digits) {
  const bool plain = !digits.empty() && digits.size() <= 8 &&
                     std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  const std::optional<std::int64_t> rank = plain ? whole_number(digits) : std::nullopt;
  return rank && *rank <= kHighestRank ? rank : std::nullopt;
}

struct Found {
  FileKind kind;
  int rank;
};

std::optional<Found> kind_of(std::string_view name) {
  for (const Name& known : kNames) {
    if (!name.starts_with(known.before) || !name.ends_with(known.after) ||
        name.size() <= known.before.size() + known.after.size())
      continue;
    const std::optional<std::int64_t> rank =
        rank_in(name.substr(known.before.size(), name.size() - known.before.size() - known.after.size()));
    if (rank) return Found{known.kind, static_cast<int>(*rank)};
  }
  // ascend_cluster_analyse_<mode>_<stages>_<ranks>_<rank>.csv
  const bool of_cluster =
      name.starts_with("ascend_cluster_analyse_") || name.starts_with("gpu_cluster_analyse_");
  if (of_cluster && name.ends_with(".csv")) {
    name.remove_suffix(4);
    const std::optional<std::int64_t> rank = rank_in(name.substr(name.rfind('_') + 1));
    if (rank) return Found{FileKind::cluster, static_cast<int>(*rank)};
  }
  return std::nullopt;
}

/// "DATA_PREPROCESS.AICPUMI", "DATA_PREPROCESS.dev.AICPUMI.0.slice_0": texts, unlike those without "MI". The
/// profiler leaves an empty ".done" beside each.
bool is_raw_getnext(std::string_view name) {
  return !name.ends_with(".done") && (name.find("DATA_PREPROCESS.AICPUMI") != std::string_view::npos ||
                                      name.find("DATA_PREPROCESS.dev.AICPUMI") != std::string_view::npos);
}

/// Names in a folder, in the order of the alphabet.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entries.size() >= kMaxEntries) break;
    entries.push_back(entry->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

class Search {
 public:
  /// Whether there was one of the files in it.
  bool look_in(const fs::path& folder) {
    std::map<std::string, Found> here;
    std::string shared_points;
    std::error_code error;
    std::size_t entries = 0;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      if (++entries > kMaxEntries) break;
      const std::string name = entry->path().filename().string();
      std::error_code unknown;
      const bool known = name == kSharedPoints || kind_of(name).has_value();
      if (!known || !entry->is_regular_file(unknown)) continue;
      if (name == kSharedPoints) {
        shared_points = entry->path().string();
      } else {
        here.emplace(entry->path().string(), *kind_of(name));
      }
    }
    for (const auto& [path, found] : here) {
      RankFolder& rank = ranks_[found.rank];
      rank.rank = found.rank;
      const bool is_new = rank.paths.emplace(found.kind, path).second;
      if (!is_new) repeated_ = true;
    }
    look_for_raw(folder);
    if (!shared_points.empty()) {
      for (auto& [number, rank] : ranks_) rank.paths.emplace(FileKind::step_points, shared_points);
    }
    return !here.empty() || found_raw_;
  }

  ProfilerFolder take() {
    ProfilerFolder folder;
    for (auto& [number, rank] : ranks_) folder.ranks.push_back(std::move(rank));
    if (repeated_)
      folder.notes.push_back("some ranks have a file more than once; the first in the alphabet is read");
    return folder;
  }

 private:
  /// PROF_*/device_<n>/data/, of one profiler folder. Devices are numbered, not ranks: with one of each they
  /// belong together.
  void look_for_raw(const fs::path& folder) {
    std::map<int, std::vector<std::string>> of_device;
    for (const fs::path& profile : entries_of(folder)) {
      if (!profile.filename().string().starts_with("PROF_")) continue;
      for (const fs::path& device : entries_of(profile)) {
        constexpr std::string_view kDevice = "device_";
        const std::string name = device.filename().string();
        if (!name.starts_with(kDevice)) continue;
        const std::optional<std::int64_t> number = rank_in(std::string_view(name).substr(kDevice.size()));
        if (!number) continue;
        for (const fs::path& file : entries_of(device / "data")) {
          std::error_code unknown;
          if (is_raw_getnext(file.filename().string()) && fs::is_regular_file(file, unknown))
            of_device[static_cast<int>(*number)].push_back(file.string());
        }
      }
    }
    found_raw_ = !of_device.empty();
    const bool one_of_each = of_device.size() == 1 && ranks_.size() == 1;
    for (auto& [number, files] : of_device) {
      RankFolder& rank = one_of_each ? ranks_.begin()->second : ranks_[number];
      if (!one_of_each) rank.rank = number;
      rank.paths.emplace(FileKind::getnext_raw, files.front());
      if (rank.raw_getnext.empty()) rank.raw_getnext = std::move(files);
    }
  }

  std::map<int, RankFolder> ranks_;
  bool repeated_ = false;
  bool found_raw_ = false;
};

}  // namespace

std::string RankFolder::path(FileKind kind) const {
  const auto found = paths.find(kind);
  return found == paths.end() ? "" : found->second;
}

const RankFolder* ProfilerFolder::rank(int number) const noexcept {
  const auto found = std::find_if(ranks.begin(), ranks.end(),
                                  [number](const RankFolder& each) { return each.rank == number; });
  return found == ranks.end() ? nullptr : &*found;
}

ProfilerFolder find_profiler_files(const std::string& folder) {
  std::error_code error;
  const fs::directory_iterator entries(folder, error);
  if (error) throw Error(folder + ": " + error.message());
  Search search;
  if (search.look_in(folder) || search.look_in(fs::path(folder) / "profiler")) return search.take();
  std::vector<fs::path> inside;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (inside.size() < kMaxFolders && entry->is_directory(unknown)) inside.push_back(entry->path());
  }
  std::sort(inside.begin(), inside.end());
  for (const fs::path& each : inside) {
    if (!search.look_in(each)) search.look_in(each / "profiler");
  }
  return search.take();
}

std::string looked_for() {
  return "looked for MindSpore's pipeline_profiling_<rank>.json, dataset_iterator_profiling_<rank>.txt, "
         "device_queue_profiling_<rank>.txt, minddata_*_<rank> and step_trace_raw_<rank>_detail_time.csv";
}

}  // namespace headrace::loader_files
