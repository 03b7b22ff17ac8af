// A stream that is read at once.
#pragma once

#include <cstddef>
#include <string>

#include "headrace/trace/reader.h"
#include "trace/format.h"

namespace headrace::trace {

/// At most `most` bytes; `is_more` is set where there are more.
std::string read_all(ByteSource& source, std::size_t most, bool& is_more);

/// A file's bytes, inflated if they begin like gzip; `damage` as GzipStream's. Throws FormatError, also for
/// what is compressed more than profiles are.
std::string read_whole(const Input& input, const ReadOptions& options, std::string& damage);

}  // namespace headrace::trace
