#include "text_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "headrace/profile/errors.h"
#include "headrace/profile/regular_file.h"

namespace headrace::loader_files {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Takes one value off `rest`, up to behind its comma or line end.
class RowReader {
 public:
  RowReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  bool at_end() const noexcept { return at_ >= text_.size(); }

  Row row() {
    Row row;
    for (;;) {
      row.push_back(value());
      if (row.size() > kMaxColumns)
        throw FormatError(path_, at_, "at most " + std::to_string(kMaxColumns) + " columns");
      if (at_end()) return row;
      if (text_[at_++] == '\n') return row;
    }
  }

 private:
  std::string value() {
    std::size_t begin = at_;
    while (begin < text_.size() && is_blank(text_[begin])) ++begin;
    if (begin < text_.size() && text_[begin] == '"') return quoted(begin + 1);
    const std::size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
    std::string value(trimmed(text_.substr(at_, end - at_)));
    at_ = end;
    return value;
  }

  std::string quoted(std::size_t begin) {
    std::string value;
    for (std::size_t i = begin;; ++i) {
      const std::size_t quote = text_.find('"', i);
      if (quote == std::string_view::npos) throw FormatError(path_, begin, "a closing quote");
      value.append(text_.substr(i, quote - i));
      i = quote + 1;
      if (i >= text_.size() || text_[i] != '"') {
        at_ = std::min(text_.find_first_of(",\n", i), text_.size());
        return value;
      }
      value += '"';
    }
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

template <class Number>
std::optional<Number> whole(std::string_view text) {
  text = trimmed(text);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string read_text(const std::string& path) { return profile::read_regular_file(path, kMaxBytes); }

std::optional<std::string_view> next_line(std::string_view& rest) {
  if (rest.empty()) return std::nullopt;
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = trimmed(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size();) {
    while (at < line.size() && is_blank(line[at])) ++at;
    std::size_t end = at;
    while (end < line.size() && !is_blank(line[end])) ++end;
    if (end > at) words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<std::int64_t> whole_number(std::string_view text) { return whole<std::int64_t>(text); }

std::optional<double> number(std::string_view text) {
  const std::optional<double> value = whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::vector<Row> rows_of(std::string_view text, const std::string& path) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::vector<Row> rows;
  std::size_t values = 0;
  RowReader reader(text, path);
  while (!reader.at_end()) {
    Row row = reader.row();
    values += row.size();
    if (values > kMaxValues)
      throw FormatError(path, 0, "a table of at most " + std::to_string(kMaxValues) + " values");
    if (row.size() > 1 || !row.front().empty()) rows.push_back(std::move(row));
  }
  return rows;
}

Heading::Heading(const Row& names) {
  for (std::size_t i = 0; i < names.size(); ++i) places_.emplace(names[i], static_cast<int>(i));
}

int Heading::place(std::string_view name) const noexcept {
  const auto found = places_.find(name);
  return found == places_.end() ? -1 : found->second;
}

std::string_view Heading::value(const Row& row, std::string_view name) const noexcept {
  const int at = place(name);
  return at < 0 || static_cast<std::size_t>(at) >= row.size() ? std::string_view()
                                                              : row[static_cast<std::size_t>(at)];
}

std::optional<std::vector<std::int64_t>> list_of(std::string_view text) {
  text = trimmed(text);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<std::int64_t> values;
  while (!trimmed(text).empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::optional<std::int64_t> value = whole_number(text.substr(0, comma));
    if (!value) return std::nullopt;
    values.push_back(*value);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return values;
}

}  // namespace headrace::loader_files
