#include "headrace/trace/csv_reader.h"

#include <array>
#include <utility>

#include "headrace/profile/errors.h"
#include "trace/byte_window.h"

namespace headrace::trace {
namespace {

constexpr std::size_t kWindow = std::size_t{256} << 10;
bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }

void trim(std::string& field) {
  while (!field.empty() && is_blank(field.back())) field.pop_back();
  std::size_t first = 0;
  while (first < field.size() && is_blank(field[first])) ++first;
  field.erase(0, first);
}

}  // namespace

CsvReader::CsvReader(ByteSource& source, std::string name)
    : source_(source), name_(std::move(name)), window_(kWindow) {}

int CsvReader::peek() {
  if (begin_ == end_ && !ended_) {
    offset_ += end_;
    begin_ = 0;
    end_ = source_.read(window_);
    ended_ = end_ == 0;
  }
  return begin_ == end_ ? kEnd : static_cast<unsigned char>(window_[begin_]);
}

int CsvReader::take() {
  const int c = peek();
  if (c != kEnd) ++begin_;
  return c;
}

void CsvReader::add(std::string& field, char c) const {
  if (field.size() >= kLongestField)
    throw FormatError(name_, offset_ + begin_, "a field of less than 4 MiB; a quote may be missing");
  field += c;
}

bool CsvReader::next(std::vector<std::string>& fields) {
  fields.clear();
  while (peek() == '\n' || peek() == '\r') take();
  if (peek() == kEnd) return false;
  const bool first = offset_ == 0 && begin_ == 0;
  std::string field;
  bool quoted = false;      // inside quotes
  bool was_quoted = false;  // the field has quotes around it: its blanks are its own
  for (;;) {
    const int c = take();
    if (quoted) {
      if (c == kEnd) cut_ = true;
      if (c == '"' && peek() == '"') {
        add(field, static_cast<char>(take()));
        continue;
      }
      if (c != '"' && c != kEnd) {
        add(field, static_cast<char>(c));
        continue;
      }
      quoted = false;
      if (c == '"') continue;
    }
    if (c == ',' || c == '\n' || c == kEnd) {
      if (!was_quoted) trim(field);
      if (fields.empty() && first && field.starts_with(kByteOrderMark)) field.erase(0, kByteOrderMark.size());
      if (fields.size() == kMaxFields)
        throw FormatError(name_, offset_ + begin_, "a table with fewer than 4096 columns");
      fields.push_back(std::exchange(field, {}));
      was_quoted = false;
      if (c != ',') return true;
    } else if (c == '"' && field.find_first_not_of(" \t") == std::string::npos) {
      field.clear();
      quoted = was_quoted = true;
    } else if (!was_quoted || !is_blank(static_cast<char>(c))) {
      add(field, static_cast<char>(c));
    }
  }
}

bool is_absent(std::string_view field) noexcept {
  constexpr std::array<std::string_view, 7> kAbsentWords = {"", "N/A", "NA", "null", "None", "nan", "NaN"};
  for (const std::string_view word : kAbsentWords) {
    if (field == word) return true;
  }
  return false;
}

}  // namespace headrace::trace
