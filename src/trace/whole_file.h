// A file that is read at once.
#pragma once

#include <string>

#include "headrace/trace/reader.h"

namespace headrace::trace {

/// Its bytes, inflated if they begin like gzip; `damage` as GzipStream's. Throws FormatError.
std::string read_whole_file(const std::string& path, const ReadOptions& options, std::string& damage);

}  // namespace headrace::trace
