// Bytes as a device trace that is laid beside a run: the merge refuses them, or writes a file that can be
// read.
//
// The first byte chooses how often the file is given (one rank or two); the rest is the file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

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

/// The segment of a run in which nothing happened.
const std::string& segment() {
  static const std::string path = [] {
    std::string folder = "/tmp/headrace-fuzz-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) std::abort();
    const auto session = profile::Session::open({.run = folder, .rank = 0});
    session->close();
    return folder + "/rank0.hrseg";
  }();
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const MemoryFile trace;
  trace.write(data + 1, size - 1);
  const MemoryFile out;
  timeline::MergeRequest request;
  request.segments = {segment()};
  request.traces.assign(1 + data[0] % 2, trace.path());
  request.out = out.path();
  try {
    timeline::merge(request);
  } catch (const Error&) {
    return 0;
  }
  const trace::TraceFile merged = trace::read_file(out.path());
  if (merged.notes.cut || !merged.notes.damage.empty()) {
    std::fprintf(stderr, "the merged file is cut or damaged\n");
    std::abort();
  }
  return 0;
}
