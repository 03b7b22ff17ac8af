// A trace file as a whole: finds the events array in it, hands its events to the parser, and keeps the rest.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "headrace/trace/read_notes.h"
#include "trace/byte_window.h"
#include "trace/event_parser.h"

namespace headrace::trace {

/// Reads to the end of the top-level value; that something follows it is noted. Returns the keys besides
/// `traceEvents`, and their values as JSON. `name`: what errors call the file. Throws FormatError when there is no
/// events array.
std::vector<std::pair<std::string, std::string>> read_document(ByteWindow& window, EventParser& parser,
                                                               ReadNotes& notes, const std::string& name,
                                                               std::size_t longest_event);

}  // namespace headrace::trace
