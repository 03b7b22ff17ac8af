#include "trace/format.h"

#include <array>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "headrace/profile/errors.h"
#include "trace/ascend/database_reader.h"
#include "trace/nsight/reader.h"

namespace headrace::trace {
namespace {

/// Only of files that can be read twice.
bool begins_as_database(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return false;
  FileBytes file(path);
  std::array<char, kDatabaseMagic.size()> first{};
  std::size_t size = 0;
  while (size < first.size()) {
    const std::size_t more = file.read(std::span(first).subspan(size));
    if (more == 0) break;
    size += more;
  }
  return std::string_view(first.data(), size) == kDatabaseMagic;
}

bool holds_json(const Input& input) { return !input.has_database(); }

std::vector<TraceFile> read_json(Input& input, const ReadOptions& options) {
  FileBytes bytes(input.path(), options.bytes_read);
  std::vector<TraceFile> traces;
  traces.push_back(read_source(bytes, input.path(), options));
  return traces;
}

constexpr std::array kFormats = {
    Format{"the Ascend profiler", true, ascend::is_profile, ascend::read_profile},
    Format{"Nsight Systems", true, nsight::is_export, nsight::read_export},
    Format{"the Chrome trace format", false, holds_json, read_json},
};

const Format& format_of(const Input& input) {
  std::string known;
  for (const Format& format : kFormats) {
    if (format.recognises(input)) return format;
    if (format.of_database) known.append(known.empty() ? "" : " or ").append(format.name);
  }
  throw FormatError(input.path(), "a SQLite database, but none that " + known + " wrote");
}

std::vector<TraceFile> read_input(Input& input, const ReadOptions& options) {
  std::vector<TraceFile> traces = format_of(input).read(input, options);
  if (input.has_database() && options.bytes_read != nullptr) *options.bytes_read += input.database().bytes();
  return traces;
}

}  // namespace

Input::Input(const std::string& path) : path_(path) {
  if (begins_as_database(path)) database_.emplace(path);
}

Input::Input(std::string_view database, const std::string& name) : path_(name) {
  database_.emplace(database, name);
}

std::vector<TraceFile> read_traces(const std::string& path, const ReadOptions& options) {
  Input input(path);
  return read_input(input, options);
}

std::vector<TraceFile> read_database(std::string_view bytes, const std::string& name,
                                     const ReadOptions& options) {
  Input input(bytes, name);
  return read_input(input, options);
}

TraceFile read_file(const std::string& path, const ReadOptions& options) {
  std::vector<TraceFile> traces = read_traces(path, options);
  if (traces.size() != 1)
    throw FormatError(path, std::to_string(traces.size()) + " ranks in one file, where one is wanted");
  return std::move(traces.front());
}

bool holds_json_events(const std::string& path) { return !begins_as_database(path); }

}  // namespace headrace::trace
