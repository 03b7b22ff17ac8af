// Texts as JSON.
#pragma once

#include <string>
#include <string_view>

namespace headrace::timeline {

/// JSON text of a string, quotes included. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

}  // namespace headrace::timeline
