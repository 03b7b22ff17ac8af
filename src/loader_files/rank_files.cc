#include "headrace/loader_files/rank_files.h"

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>

#include "headrace/profile/errors.h"
#include "rank_getnext.h"
#include "text_file.h"

namespace headrace::loader_files {
namespace {

/// Files that only a run on an NPU or a GPU leaves.
constexpr std::array kOfDevices{FileKind::getnext_ascend, FileKind::getnext_gpu,  FileKind::getnext_raw,
                                FileKind::step_trace,     FileKind::aicore_types, FileKind::aicore_details,
                                FileKind::aicpu,          FileKind::gpu_types,    FileKind::gpu_details,
                                FileKind::gpu_activity,   FileKind::timeline};

class RankReader {
 public:
  explicit RankReader(const RankFolder& folder) : folder_(folder) {
    files_.rank = folder.rank;
    files_.has_device = std::any_of(kOfDevices.begin(), kOfDevices.end(),
                                    [&](FileKind kind) { return !folder.path(kind).empty(); });
  }

  RankFiles read() {
    read_pipeline();
    take(FileKind::device_queue, files_.device_queue, read_batch_records);
    take(FileKind::dataset_iterator, files_.dataset_iterator, read_batch_records);
    for (const FileKind kind : {FileKind::getnext_ascend, FileKind::getnext_gpu, FileKind::getnext_raw}) {
      if (!files_.getnext) take_getnext(kind);
    }
    take(FileKind::cpu, files_.cpu, read_cpu);
    take(FileKind::step_trace, files_.steps, read_step_trace);
    take(FileKind::step_points, files_.points, read_step_points);
    if (!read_one_ && first_error_) std::rethrow_exception(first_error_);
    if (!read_one_)
      throw Error("rank " + std::to_string(folder_.rank) + ": no data-preparation file and no step trace; " +
                  looked_for());
    return std::move(files_);
  }

 private:
  /// The table of an operator tree says the same as the samples' own file, where that one is missing; the
  /// summary has averages only.
  void read_pipeline() {
    take(FileKind::pipeline_summary, files_.summary, read_pipeline_summary);
    if (!files_.summary) take(FileKind::pipeline_summary_table, files_.summary, read_pipeline_summary_table);
    take(FileKind::pipeline_profiling, files_.pipeline, read_pipeline_profiling);
    if (files_.pipeline) return;
    take(FileKind::pipeline_table, files_.pipeline, read_pipeline_table);
    if (files_.pipeline) {
      files_.notes.push_back(
          "the operators are read from minddata_pipeline_raw, which leaves out those without a queue");
    } else if (files_.summary) {
      files_.pipeline = files_.summary->as_pipeline();
      files_.notes.push_back(
          "the operators are read from minddata_pipeline_summary, which has averages and no samples");
    }
  }

  template <class File, class Read>
  void take(FileKind kind, std::optional<File>& into, Read&& read) {
    const std::string path = folder_.path(kind);
    if (path.empty()) return;
    try {
      into = read(read_text(path), path);
      read_one_ = true;
    } catch (const FormatError& error) {
      note(error, path);
    }
  }

  void take_getnext(FileKind kind) {
    RankFolder alone;
    alone.rank = folder_.rank;
    if (const std::string path = folder_.path(kind); !path.empty()) alone.paths.emplace(kind, path);
    if (kind == FileKind::getnext_raw) alone.raw_getnext = folder_.raw_getnext;
    if (alone.paths.empty()) return;
    try {
      files_.getnext = getnext_of(alone);
      read_one_ = true;
    } catch (const FormatError& error) {
      note(error, alone.path(kind));
    }
  }

  void note(const FormatError& error, const std::string& path) {
    const std::string place =
        error.offset() ? "byte " + std::to_string(*error.offset()) + ": expected " : std::string();
    files_.notes.push_back(std::filesystem::path(path).filename().string() + " could not be read: " + place +
                           error.expected());
    if (!first_error_) first_error_ = std::current_exception();
  }

  const RankFolder& folder_;
  RankFiles files_;
  std::exception_ptr first_error_;
  bool read_one_ = false;
};

}  // namespace

RankFiles read_rank(const RankFolder& folder) { return RankReader(folder).read(); }

}  // namespace headrace::loader_files
