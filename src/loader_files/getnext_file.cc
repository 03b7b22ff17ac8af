#include "headrace/loader_files/getnext_file.h"

#include <algorithm>

#include "headrace/profile/errors.h"
#include "text_file.h"

namespace headrace::loader_files {

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
  if (unread > 0)
    file.notes.push_back(std::to_string(unread) + " of the device's GetNext records could not be read");
  std::stable_sort(file.calls.begin(), file.calls.end(),
                   [](const GetNext& a, const GetNext& b) { return a.start_s < b.start_s; });
  return file;
}

}  // namespace headrace::loader_files
