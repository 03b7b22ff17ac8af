// The JSON of a trace, whatever file its events are in.
#pragma once

#include <memory>
#include <string>

#include "headrace/trace/byte_source.h"

namespace headrace::timeline {

/// The bytes of the file; of a profiler's database, the events of all its ranks as an array in the Chrome trace
/// format, with the names of their rows, and stream and correlation as arguments. Memory of the latter is that
/// of its columns. Throws FormatError if the file cannot be opened or the database cannot be read.
std::unique_ptr<trace::ByteSource> open_events(const std::string& path);

}  // namespace headrace::timeline
