// Bytes as a device trace that is laid beside a run, and that gets counters: both refuse them, or write a
// file that can be read.
//
// The first byte chooses how often the file is given (one rank or two); the rest is the file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "headrace/profile/current.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/probes.h"
#include "headrace/profile/session.h"
#include "headrace/timeline/merge.h"
#include "headrace/timeline/trace_with_counters.h"
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

/// A folder with a run of a few steps; out it goes at the end of the process.
class Scratch {
 public:
  Scratch() {
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
    const auto session = profile::Session::open({.run = folder_, .rank = 0});
    profile::CurrentSession::set(session);
    profile::LoopRecorder loop(std::make_shared<profile::LoaderHandle>(session, "train", nullptr));
    for (int step = 0; step < 20; ++step) {
      loop.begin_wait();
      loop.end_wait(true, false);
    }
    loop.end_loop();
    profile::CurrentSession::set(nullptr);
    session->close();
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string segment() const { return folder_ + "/rank0.hrseg"; }
  std::string out() const { return folder_ + "/out.json.gz"; }

 private:
  std::string folder_ = std::filesystem::temp_directory_path() / "headrace-fuzz-XXXXXX";
};

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

/// What was written can be read, and holds at least so many events.
void require_sound(const std::string& path, std::size_t events) {
  const trace::TraceFile written = trace::read_file(path);
  require(!written.notes.cut && written.notes.damage.empty(), "the written file is cut or damaged");
  require(written.columns.size() >= events, "events of ours are missing");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const Scratch scratch;
  const MemoryFile file;
  file.write(data + 1, size - 1);
  const std::string out = scratch.out();

  timeline::MergeRequest request;
  request.segments = {scratch.segment()};
  request.traces.assign(1 + data[0] % 2, file.path());
  request.out = out;
  try {
    const timeline::MergeResult merged = timeline::merge(request);
    require_sound(out, merged.slices + merged.counters + merged.flows);
  } catch (const FormatError&) {  // no trace: the only reason to write nothing
    return 0;
  }
  const trace::Trace trace = trace::load_trace(file.path());
  try {
    const timeline::CountersResult counted = timeline::write_with_counters({.trace = trace, .out = out});
    require_sound(out, counted.counters);
  } catch (const UsageError&) {  // nothing to count
  }
  return 0;
}
