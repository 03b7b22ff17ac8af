// The one way from a user's string into the page.
#pragma once

#include <string>
#include <string_view>

namespace headrace::report {

/// Printable (printable.h) and without meaning to HTML, in text as in a quoted attribute.
std::string escaped(std::string_view text);

}  // namespace headrace::report
