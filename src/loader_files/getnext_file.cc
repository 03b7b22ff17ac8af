#include "headrace/loader_files/getnext_file.h"

#include <algorithm>

#include "headrace/profile/errors.h"
#include "text_file.h"
#include "units.h"

namespace headrace::loader_files {
namespace {

void finish(GetNextFile& file, std::size_t unread) {
  if (unread > 0)
    file.notes.push_back(std::to_string(unread) + " of the device's GetNext records could not be read");
  std::stable_sort(file.calls.begin(), file.calls.end(),
                   [](const GetNext& a, const GetNext& b) { return a.start_s < b.start_s; });
}

/// What stands behind `name` and a colon in a part of a raw record; empty where it is another part.
std::optional<std::string_view> value_of(std::string_view part, std::string_view name) {
  while (part.starts_with(' ')) part.remove_prefix(1);
  if (!part.starts_with(name) || part.size() <= name.size() || part[name.size()] != ':') return std::nullopt;
  return part.substr(name.size() + 1);
}

/// Empty where a figure is missing.
std::optional<GetNext> call_of(std::string_view record) {
  GetNext call;
  std::optional<double> start;
  std::optional<double> end;
  std::optional<std::int64_t> level;
  while (!record.empty()) {
    const std::size_t comma = std::min(record.find(','), record.size());
    const std::string_view part = record.substr(0, comma);
    record.remove_prefix(std::min(comma + 1, record.size()));
    if (const auto node = value_of(part, "Node")) call.node = std::string(*node);
    if (const auto value = value_of(part, "Run start")) start = number(*value);
    if (const auto value = value_of(part, "Run end")) end = number(*value);
    if (const auto value = value_of(part, "queue size")) level = whole_number(*value);
  }
  if (!start || !end || !level || *start < 0 || *end < *start || *level < 0) return std::nullopt;
  call.start_s = *start * kMicrosecond;
  call.end_s = *end * kMicrosecond;
  call.level = *level;
  return call;
}

}  // namespace

GetNextFile read_getnext(std::string_view text, DeviceTicks ticks, const std::string& path) {
  const double tick_s = ticks == DeviceTicks::microseconds ? 1e-6 : 1e-9;
  GetNextFile file;
  std::size_t unread = 0;
  std::string_view rest = text;
  while (const std::optional<std::string_view> line = next_line(rest)) {
    const std::vector<std::string_view> words = words_of(*line);
    if (words.empty() || !words.front().starts_with("GetNext")) continue;
    const std::optional<double> start = words.size() == 4 ? number(words[1]) : std::nullopt;
    const std::optional<double> end = words.size() == 4 ? number(words[2]) : std::nullopt;
    const std::optional<std::int64_t> level = words.size() == 4 ? whole_number(words[3]) : std::nullopt;
    if (!start || !end || !level || *start < 0 || *end < *start || *level < 0) {
      ++unread;
      continue;
    }
    file.calls.push_back({std::string(words.front()), *start * tick_s, *end * tick_s, *level});
  }
  if (file.calls.empty()) throw FormatError(path, 0, "lines `GetNext start end level`");
  finish(file, unread);
  return file;
}

GetNextFile read_raw_getnext(std::string_view text, const std::string& path) {
  GetNextFile file;
  std::size_t unread = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    const std::string_view record = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t node = record.find("Node:GetNext");
    if (node == std::string_view::npos) continue;
    if (std::optional<GetNext> call = call_of(record.substr(node))) {
      file.calls.push_back(std::move(*call));
    } else {
      ++unread;
    }
  }
  if (file.calls.empty())
    throw FormatError(path, 0, "records `Node:GetNext..., Run start:..., Run end:..., queue size:...`");
  finish(file, unread);
  return file;
}

}  // namespace headrace::loader_files
