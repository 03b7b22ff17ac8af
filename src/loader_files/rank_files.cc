#include "headrace/loader_files/rank_files.h"

#include <exception>
#include <filesystem>

#include "headrace/profile/errors.h"
#include "text_file.h"

namespace headrace::loader_files {
namespace {

class Reader {
 public:
  explicit Reader(const RankFolder& folder) : folder_(folder) { files_.rank = folder.rank; }

  RankFiles read() {
    read_pipeline();
    take(FileKind::device_queue, files_.device_queue, read_batch_records);
    take(FileKind::dataset_iterator, files_.dataset_iterator, read_batch_records);
    take(FileKind::getnext_ascend, files_.getnext, [](std::string_view text, const std::string& path) {
      return read_getnext(text, DeviceTicks::microseconds, path);
    });
    if (!files_.getnext) {
      take(FileKind::getnext_gpu, files_.getnext, [](std::string_view text, const std::string& path) {
        return read_getnext(text, DeviceTicks::nanoseconds, path);
      });
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
      files_.notes.push_back(std::filesystem::path(path).filename().string() + " could not be read: byte " +
                             std::to_string(error.offset()) + ": expected " + error.expected());
      if (!first_error_) first_error_ = std::current_exception();
    }
  }

  const RankFolder& folder_;
  RankFiles files_;
  std::exception_ptr first_error_;
  bool read_one_ = false;
};

}  // namespace

RankFiles read_rank(const RankFolder& folder) { return Reader(folder).read(); }

}  // namespace headrace::loader_files
