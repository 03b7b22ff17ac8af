// Names and sentences as a terminal may show them: no control characters, known width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::report {

/// UTF-8 without control characters (line breaks and tabs become blanks), direction marks and broken bytes
/// (U+FFFD).
std::string printable(std::string_view text);

/// Columns that printable text takes: 2 for East Asian wide characters and emoji, 0 for combining ones.
std::size_t columns(std::string_view text);

/// Columns of a name within a sentence.
inline constexpr std::size_t kLongestName = 60;

/// Printable text in at most `most` columns, ended by "…" where something was cut.
std::string shortened(std::string_view text, std::size_t most);

/// `text` followed (or preceded) by blanks up to `width` columns; never cut.
std::string padded(const std::string& text, std::size_t width, bool to_the_right = false);

/// Words in lines of at most `width` columns; a word that is longer is cut.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

}  // namespace headrace::report
