// A stream that is read at once.
#pragma once

#include <string>

#include "headrace/trace/reader.h"
#include "trace/format.h"

namespace headrace::trace {

std::string read_all(ByteSource& source);

/// A file's bytes, inflated if they begin like gzip; `damage` as GzipStream's. Throws FormatError.
std::string read_whole(const Input& input, const ReadOptions& options, std::string& damage);

}  // namespace headrace::trace
