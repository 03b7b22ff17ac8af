#include "trace/format.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "headrace/profile/errors.h"
#include "headrace/trace/gzip_stream.h"
#include "trace/ascend/database_reader.h"
#include "trace/nsight/reader.h"
#include "trace/perfetto/reader.h"
#include "trace/process_trace.h"
#include "trace/rocm/rocpd.h"
#include "trace/rocm/rocprofv3.h"
#include "trace/whole_file.h"
#include "trace/xplane/arguments.h"
#include "trace/xplane/reader.h"
#include "trace/xplane/trace_json.h"

namespace headrace::trace {
namespace {

/// Enough of a file to tell what it is.
constexpr std::size_t kBeginning = std::size_t{1} << 14;

/// Only of files that can be read twice.
std::string beginning_of(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return "";
  FileBytes file(path);
  return std::string(PeekedBytes(file, kBeginning).first());
}

bool begins_as_database(std::string_view beginning) { return beginning.starts_with(kDatabaseMagic); }

/// Of a whole stream that begins so, the text, as far as it goes.
std::string inflated(const std::string& beginning, const std::string& path) {
  MemoryBytes bytes(beginning);
  GzipStream stream(bytes, path);
  return std::string(PeekedBytes(stream, kBeginning).first());
}

bool holds_json(const Input& input) { return !input.has_database(); }

TraceFile read_json_file(const Input& input, const ReadOptions& options) {
  return read_source(*input.open(options.bytes_read), input.path(), options);
}

std::vector<TraceFile> read_json(Input& input, const ReadOptions& options) {
  TraceFile trace = read_json_file(input, options);
  const bool again = !input.beginning().empty() && xplane::is_trace_json(trace.columns);
  if (again) {
    ReadOptions more = xplane::with_arguments(options, true);
    more.bytes_read = nullptr;
    trace = read_json_file(input, more);
    xplane::adopt_trace_json(trace.columns);
  }
  return split_ranks(std::move(trace));
}

constexpr std::array kFormats = {
    Format{"the Ascend profiler", true, ascend::is_profile, ascend::read_profile},
    Format{"Nsight Systems", true, nsight::is_export, nsight::read_export},
    Format{"rocprofv3", true, rocm::is_rocpd, rocm::read_rocpd},
    Format{"rocprofv3's JSON", false, rocm::is_rocprofv3, rocm::read_rocprofv3},
    Format{"XPlane", false, xplane::is_xplane, xplane::read_xplane},
    Format{"Perfetto", false, perfetto::is_perfetto, perfetto::read_perfetto},
    Format{"the Chrome trace format", false, holds_json, read_json},
};

/// Files that are often taken for traces: what is in their first bytes, what they are, and what to do.
struct Stray {
  std::string_view holds;
  std::size_t at;
  const char* says;
};
constexpr std::size_t kAnywhere = std::string_view::npos;
constexpr std::array kStrays = {
    Stray{"PK\x03\x04", 0, "a zip archive: unpack it, and name the trace that is in it"},
    Stray{kDatabaseMagic, 0, "a compressed database: unpack it (gunzip), and name the database"},
    Stray{"ustar", 257, "a tar archive: unpack it, and name the traces that are in it"},
    Stray{"NVIDIA Tegra Profiler", 0,
          "a report of Nsight Systems, which only nsys can open: nsys export --type sqlite writes what is "
          "read"},
    Stray{"<", 0, "a page of HTML, not the trace that it shows"},
    Stray{"speedscope.app/file-format-schema", kAnywhere,
          "a profile for speedscope; py-spy record --format chrometrace writes what is read"},
    Stray{"-chakra.", kAnywhere,
          "an execution trace of PyTorch, which has no times: torch.profiler writes a trace"},
};

void refuse_strays(const Input& input) {
  const std::string_view text = input.beginning();
  const bool is_trace = text.find("\"traceEvents\"") != std::string_view::npos ||
                        text.find_first_not_of(" \t\r\n") == text.find('[');
  for (const Stray& stray : kStrays) {
    if (stray.at == kAnywhere ? !is_trace && text.find(stray.holds) != kAnywhere
                              : text.substr(0, stray.at + stray.holds.size()).ends_with(stray.holds))
      throw FormatError(input.path(), stray.says);
  }
}

const Format& format_of(const Input& input) {
  if (!input.has_database()) refuse_strays(input);
  std::vector<std::string_view> known;
  for (const Format& format : kFormats) {
    if (format.recognises(input)) return format;
    if (format.of_database) known.push_back(format.name);
  }
  std::string listed;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const std::string_view between = i + 1 == known.size() ? " or " : ", ";
    listed.append(i == 0 ? std::string_view() : between).append(known[i]);
  }
  throw FormatError(input.path(), "a SQLite database, but none that " + listed + " wrote");
}

std::vector<TraceFile> read_input(Input& input, const ReadOptions& options) {
  std::vector<TraceFile> traces = format_of(input).read(input, options);
  if (input.has_database() && options.bytes_read != nullptr) *options.bytes_read += input.database().bytes();
  return traces;
}

}  // namespace

Input::Input(const std::string& path) : path_(path), beginning_(beginning_of(path)) {
  if (begins_as_database(beginning_)) {
    database_.emplace(path);
  } else {
    beginning_ = inflated(beginning_, path);
  }
}

Input::Input(std::string_view bytes, const std::string& name) : path_(name), memory_(bytes) {
  if (begins_as_database(bytes)) {
    database_.emplace(bytes, name);
  } else {
    beginning_ = inflated(std::string(bytes.substr(0, kBeginning)), name);
  }
}

std::size_t Input::size() const noexcept {
  if (memory_) return memory_->size();
  std::error_code unknown;
  const std::uintmax_t bytes = std::filesystem::file_size(path_, unknown);
  return unknown ? 0 : static_cast<std::size_t>(bytes);
}

std::unique_ptr<ByteSource> Input::open(std::atomic<std::uint64_t>* bytes_read) const {
  if (memory_) return std::make_unique<MemoryBytes>(*memory_);
  return std::make_unique<FileBytes>(path_, bytes_read);
}

bool Input::begins_as_json() const noexcept {
  const std::size_t bracket = beginning_.find_first_not_of(" \t\r\n");
  if (bracket == std::string::npos || (beginning_[bracket] != '{' && beginning_[bracket] != '['))
    return false;
  constexpr std::string_view kBehind = " \t\r\n\"{}[]-0123456789";
  return bracket + 1 == beginning_.size() || kBehind.find(beginning_[bracket + 1]) != std::string_view::npos;
}

bool Input::any_table(bool (*is)(std::string_view table)) const {
  return database_ && std::any_of(database_->tables().begin(), database_->tables().end(), is);
}

std::vector<TraceFile> read_traces(const std::string& path, const ReadOptions& options) {
  Input input(path);
  return read_input(input, options);
}

std::vector<TraceFile> read_bytes(std::string_view bytes, const std::string& name,
                                  const ReadOptions& options) {
  Input input(bytes, name);
  return read_input(input, options);
}

std::vector<TraceFile> read_stream(ByteSource& source, const std::string& name, const ReadOptions& options) {
  PeekedBytes whole(source, kBeginning);
  const bool is_database = begins_as_database(whole.first());
  const Input looked_at(is_database ? std::string_view() : whole.first(), name);
  const bool is_chrome =
      !is_database && kFormats.back().recognises(looked_at) && &format_of(looked_at) == &kFormats.back();
  if (is_chrome) return split_ranks(read_source(whole, name, options));
  constexpr std::size_t kMostInMemory = std::size_t{4} << 30;
  bool is_more = false;
  const std::string bytes = read_all(whole, kMostInMemory, is_more);
  if (is_more) throw FormatError(name, "a profile of more than 4 GiB: copy it to a disk first");
  return read_bytes(bytes, name, options);
}

TraceFile read_file(const std::string& path, const ReadOptions& options) {
  std::vector<TraceFile> traces = read_traces(path, options);
  if (traces.size() != 1)
    throw FormatError(path, std::to_string(traces.size()) + " ranks in one file, where one is wanted");
  return std::move(traces.front());
}

bool holds_json_events(const std::string& path) {
  const Input input(path);
  const auto* const format = std::find_if(kFormats.begin(), kFormats.end(),
                                          [&](const Format& each) { return each.recognises(input); });
  return format != kFormats.end() && format->read == read_json;
}

}  // namespace headrace::trace
