// Reads the trace files of device profilers into columns: Chrome trace format (PyTorch's Kineto and others),
// the databases of Ascend's profilers, Nsight Systems and rocprofv3, XPlane, Perfetto.
//
//     const auto file = headrace::trace::read_file("rank0.json.gz");
//     for (headrace::trace::Row row = 0; row < file.columns.size(); ++row)
//       std::cout << file.columns.name_of(row) << ' ' << file.columns.duration_ns[row] << '\n';
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/trace/byte_source.h"
#include "headrace/trace/columns.h"
#include "headrace/trace/read_notes.h"

namespace headrace::trace {

/// The arguments that the analyses use, besides `stream`, `correlation` and `External id`, which are always
/// read.
std::vector<Argument> analysed_arguments();

struct ReadOptions {
  /// Arguments that become columns. Others are left in the file: to see them, read it with their names added.
  std::vector<Argument> arguments = analysed_arguments();
  /// Bytes of JSON that are looked at together. Memory beside the columns is about eight times this, or of
  /// the longest event. This long it stays in the cache of a core.
  std::size_t window_bytes = std::size_t{1} << 18;
  /// An event that is longer than this is skipped and counted.
  std::size_t longest_event_bytes = std::size_t{4} << 20;
  /// Counted up by the bytes of files that are read, as they are read; null if not needed.
  std::atomic<std::uint64_t>* bytes_read = nullptr;
};

/// One file, read.
struct TraceFile {
  std::string path;
  Columns columns;
  ReadNotes notes;
  /// `rank` of `distributedInfo`, nothing if the file does not say.
  std::optional<std::int64_t> rank;
  /// Shift from `start_ns` to Unix time (`baseTimeNanoseconds`); nothing in older traces,
  /// whose stamps are Unix time already or are on a clock of their own.
  std::optional<std::int64_t> base_time_ns;
  /// The other keys of the top-level object and their values as JSON, in the order of the file. A value over
  /// 1 MiB is left out.
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// The traces of a file, whose format is recognised by its content: one for each rank, of which only those of
/// Nsight and of rocprofv3 may have several. Memory beside the columns: of JSON a few windows, however large
/// the file is; of a database its texts; of XPlane and Perfetto the file.
///
/// JSON is an object that has `traceEvents` (anywhere in it), or a bare array of events; gzip is recognised
/// by its first bytes. A file that ends too early (its job was killed) gives every event before the cut, and
/// `notes.cut`. Events that cannot be read are skipped one by one and counted in `notes`; tables and columns
/// that a database lacks are said in `notes.remarks`. Throws FormatError when the file cannot be read at all
/// or holds no events.
std::vector<TraceFile> read_traces(const std::string& path, const ReadOptions& options = {});

/// Reads a file of one rank; FormatError if it has several.
TraceFile read_file(const std::string& path, const ReadOptions& options = {});

/// Reads from memory; `name` is what errors and `path` call it.
std::vector<TraceFile> read_bytes(std::string_view bytes, const std::string& name,
                                  const ReadOptions& options = {});

/// Reads from a stream, once. Anything but the Chrome trace format is taken into memory first;
/// JSON beside XPlane is read as JSON of any other tool.
std::vector<TraceFile> read_stream(ByteSource& source, const std::string& name,
                                   const ReadOptions& options = {});

/// JSON in the Chrome trace format.
TraceFile read_source(ByteSource& source, const std::string& name, const ReadOptions& options = {});

/// True if the file's bytes are the events' JSON in the Chrome trace format, perhaps compressed.
bool holds_json_events(const std::string& path);

}  // namespace headrace::trace
