#include "headrace/profile/function_shares.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace headrace::profile {

void store_functions(OperatorRecord& record, std::string_view lines) noexcept {
  std::array<char, sizeof(OperatorRecord::functions)> text{};
  while (lines.size() >= text.size()) {
    const std::size_t end = lines.substr(0, lines.size() - 1).rfind('\n');
    lines = lines.substr(0, end == std::string_view::npos ? 0 : end + 1);
  }
  std::copy(lines.begin(), lines.end(), text.begin());
  store_words(record.functions.data(), text.data(), text.size());
}

std::vector<FunctionShare> functions_of(const OperatorRecord& record) {
  std::vector<FunctionShare> functions;
  std::string_view text = text_of(record.functions);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos || tab == 0) continue;
    double share = -1;
    std::from_chars(line.data() + tab + 1, line.data() + line.size(), share);
    if (share >= 0 && share <= 1) functions.push_back({std::string(line.substr(0, tab)), share});
  }
  return functions;
}

}  // namespace headrace::profile
