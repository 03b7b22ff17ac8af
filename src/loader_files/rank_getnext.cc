#include "rank_getnext.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iterator>

#include "headrace/profile/errors.h"
#include "text_file.h"

namespace headrace::loader_files {
namespace {

GetNextFile raw_files(const RankFolder& folder) {
  GetNextFile all;
  std::exception_ptr first_error;
  for (const std::string& path : folder.raw_getnext) {
    try {
      GetNextFile file = read_raw_getnext(read_text(path), path);
      std::move(file.calls.begin(), file.calls.end(), std::back_inserter(all.calls));
      std::move(file.notes.begin(), file.notes.end(), std::back_inserter(all.notes));
    } catch (const FormatError& error) {
      if (!first_error) first_error = std::current_exception();
      all.notes.push_back(std::filesystem::path(path).filename().string() + " could not be read: expected " +
                          error.expected());
    }
  }
  if (all.calls.empty() && first_error) std::rethrow_exception(first_error);
  std::stable_sort(all.calls.begin(), all.calls.end(),
                   [](const GetNext& a, const GetNext& b) { return a.start_s < b.start_s; });
  return all;
}

}  // namespace

GetNextFile getnext_of(const RankFolder& folder) {
  const std::string ascend = folder.path(FileKind::getnext_ascend);
  if (!ascend.empty()) return read_getnext(read_text(ascend), DeviceTicks::microseconds, ascend);
  const std::string gpu = folder.path(FileKind::getnext_gpu);
  if (!gpu.empty()) return read_getnext(read_text(gpu), DeviceTicks::nanoseconds, gpu);
  return raw_files(folder);
}

}  // namespace headrace::loader_files
