// The timeline that MindSpore's profiler writes, with names of its rows: ascend_timeline_display_<rank>.json,
// gpu_timeline_display_<rank>.json. The file has numbers only; its viewer knew what they mean.
#pragma once

#include <string>
#include <string_view>

namespace headrace::loader_files {

/// By the name of the file.
bool is_profiler_timeline(std::string_view path);

/// The file's text, with an event for the name of each process and thread in front. Unchanged where it has such names
/// already, or is no list of events. FormatError where the file cannot be read.
std::string named_timeline(const std::string& path);
/// The same of a text.
std::string with_row_names(std::string text);

}  // namespace headrace::loader_files
