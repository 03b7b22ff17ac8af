// A strict reader of what to_html writes: finds elements that do not close, and text that is not escaped.
#pragma once

#include <string>
#include <vector>

namespace headrace::report {

struct MarkupReading {
  std::string error;                    ///< "" where all is well, else what and where
  std::string text;                     ///< between the tags, without the style sheet
  std::vector<std::string> attributes;  ///< every name="value", entities as they stand
  std::vector<std::string> elements;    ///< names of opened elements, in their order
};

MarkupReading read_markup(const std::string& page);

}  // namespace headrace::report
