#include "headrace/loader_files/profiler_timeline.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "headrace/profile/errors.h"
#include "json_document.h"
#include "text_file.h"

namespace headrace::loader_files {
namespace {

/// A file has a few dozen; a damaged one may have any number.
constexpr std::size_t kMaxRows = 4096;

using TimelineRow = std::pair<std::int64_t, std::string>;  // process and, as it is written, thread

std::string process_name(std::int64_t pid) {
  constexpr std::array<std::pair<std::int64_t, const char*>, 5> kNames{{{9000, "AI CPU"},
                                                                        {10000, "Communication"},
                                                                        {11000, "Host CPU"},
                                                                        {12000, "Overlap Analysis"},
                                                                        {13000, "GPU activity"}}};
  for (const auto& [number, name] : kNames) {
    if (number == pid) return name;
  }
  return "Device " + std::to_string(pid);
}

std::string thread_name(const std::string& tid) {
  constexpr std::array<std::pair<std::string_view, const char*>, 6> kNames{
      {{"7999", "Computation"},
       {"8000", "Communication, not overlapped"},
       {"8001", "Communication"},
       {"8002", "Free"},
       {"100000", "Steps"},
       {"100001", "Scopes"}}};
  for (const auto& [number, name] : kNames) {
    if (number == tid) return name;
  }
  return whole_number(tid) ? "Stream " + tid : "";
}

/// Empty where the events have names, or are no list.
std::optional<std::set<TimelineRow>> rows_of_events(const std::string& text) {
  std::set<TimelineRow> rows;
  try {
    const JsonDocument document(text, "timeline");
    simdjson::dom::array events;
    if (document.root().get(events) != simdjson::SUCCESS) return std::nullopt;
    for (const Json event : events) {
      const std::optional<Json> phase = member(event, "ph");
      if (phase && text_of(*phase) == "M") return std::nullopt;
      const std::optional<Json> process = member(event, "pid");
      const std::optional<Json> thread = member(event, "tid");
      const std::optional<std::int64_t> pid = process ? integer_of(*process) : std::nullopt;
      if (!pid || !thread || rows.size() == kMaxRows) continue;
      rows.emplace(*pid, simdjson::minify(*thread));
    }
  } catch (const FormatError&) {
    return std::nullopt;  // what reads the events says what is wrong with them
  }
  return rows;
}

std::string plain(std::string tid) {
  if (tid.size() > 1 && tid.front() == '"') tid = tid.substr(1, tid.size() - 2);
  return tid;
}

}  // namespace

bool is_profiler_timeline(std::string_view path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name.ends_with(".json") &&
         (name.starts_with("ascend_timeline_display_") || name.starts_with("gpu_timeline_display_"));
}

std::string named_timeline(const std::string& path) { return with_row_names(read_text(path)); }

std::string with_row_names(std::string text) {
  const std::optional<std::set<TimelineRow>> rows = rows_of_events(text);
  const std::size_t open = text.find('[');
  if (!rows || rows->empty() || open == std::string::npos) return text;
  std::string names;
  std::set<std::int64_t> processes;
  for (const auto& [pid, tid] : *rows) {
    const std::string of = "\",\"pid\":" + std::to_string(pid) + ",\"tid\":" + tid + ",\"args\":{\"name\":\"";
    if (processes.insert(pid).second)
      names += "{\"ph\":\"M\",\"name\":\"process_name" + of + process_name(pid) + "\"}},\n";
    const std::string thread = thread_name(plain(tid));
    if (!thread.empty()) names += "{\"ph\":\"M\",\"name\":\"thread_name" + of + thread + "\"}},\n";
  }
  text.insert(open + 1, names);
  return text;
}

}  // namespace headrace::loader_files
