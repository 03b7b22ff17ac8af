// Bytes as a device trace that is laid beside a run: the merge refuses them, or writes a file that can be
// read.
//
// The first byte chooses how often the file is given (one rank or two) and whether the merged file is
// compressed; the rest is the file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "headrace/profile/errors.h"
#include "headrace/profile/session.h"
#include "headrace/timeline/merge.h"
#include "headrace/trace/reader.h"

namespace {

using namespace headrace;

/// A file in memory that others open by its path.
class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (file_ < 0) std::abort();
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void write(const std::uint8_t* data, std::size_t size) const {
    if (::write(file_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

/// The segment of a run in which nothing happened, and room for what is merged.
class Folder {
 public:
  Folder() {
    if (mkdtemp(path_.data()) == nullptr) std::abort();
    const auto session = profile::Session::open({.run = path_, .rank = 0});
    session->close();
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string segment() const { return path_ + "/rank0.hrseg"; }
  std::string out(bool compressed) const { return path_ + (compressed ? "/out.json.gz" : "/out.json"); }

 private:
  std::string path_ = "/tmp/headrace-fuzz-XXXXXX";
};

/// False where the file is refused.
bool merge(const Folder& folder, std::string_view text, int times, bool compressed) {
  const MemoryFile trace;
  trace.write(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  timeline::MergeRequest request;
  request.segments = {folder.segment()};
  request.traces.assign(static_cast<std::size_t>(times), trace.path());
  request.out = folder.out(compressed);
  try {
    timeline::merge(request);
  } catch (const Error&) {
    return false;
  }
  const trace::TraceFile merged = trace::read_file(request.out);
  demand(!merged.notes.cut && merged.notes.damage.empty(), "the merged file is whole");
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  // Where nothing can be written every merge is refused, and nothing would be tested.
  static const bool works =
      merge(folder, R"([{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}])", 1, true);
  demand(works, "a sound file can be merged");
  if (size == 0) return 0;
  merge(folder, std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1), 1 + data[0] % 2,
        data[0] % 4 < 2);
  return 0;
}
