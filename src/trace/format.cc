#include <array>
#include <utility>

#include "headrace/profile/errors.h"
#include "trace/input.h"
#include "trace/process_trace.h"
#include "trace/xplane/kinds.h"

namespace headrace::trace {
namespace {

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

const Format kChrome{"the Chrome trace format", false, holds_json, read_json};
const std::array kFormats = {&kAscendProfile, &kNsightExport, &kRocpd, &kXPlane, &kPerfetto, &kChrome};

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
    Stray{"\"rocprofiler-sdk-tool\"", kAnywhere,
          "rocprofv3's JSON, which is not read; rocprofv3 --output-format rocpd writes what is read"},
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
  for (const Format* const format : kFormats) {
    if (format->recognises(input)) return *format;
    if (format->of_database) known.push_back(format->name);
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
  const bool is_database = whole.first().starts_with(kDatabaseMagic);
  const Input looked_at(is_database ? std::string_view() : whole.first(), name);
  const bool is_chrome = !is_database && &format_of(looked_at) == &kChrome;
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

bool holds_json_events(const std::string& path) { return &format_of(Input(path)) == &kChrome; }

}  // namespace headrace::trace
