#include "trace/nsight/texts.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace headrace::trace::nsight {
namespace {

constexpr std::array<std::string_view, 3> kUnique = {", op_id = ", ", seq = ", ", sizes = "};

/// The number behind `key`, nothing if it is not there.
std::optional<std::int64_t> number_behind(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t number = 0;
  const char* const begin = text.data() + at + key.size();
  if (std::from_chars(begin, text.data() + text.size(), number).ec != std::errc() || number < 0)
    return std::nullopt;
  return number;
}

template <class Value>
void sort_by_id(std::vector<std::pair<std::int64_t, Value>>& pairs) {
  const auto by_id = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (!std::is_sorted(pairs.begin(), pairs.end(), by_id)) std::stable_sort(pairs.begin(), pairs.end(), by_id);
}

template <class Value>
const Value* find_id(const std::vector<std::pair<std::int64_t, Value>>& pairs, std::int64_t id) {
  const auto at = std::lower_bound(pairs.begin(), pairs.end(), id,
                                   [](const auto& pair, std::int64_t wanted) { return pair.first < wanted; });
  return at == pairs.end() || at->first != id ? nullptr : &at->second;
}

}  // namespace

RangeText range_text(std::string_view text) {
  std::size_t end = text.size();
  for (const std::string_view key : kUnique) end = std::min(end, text.find(key));
  const std::string_view name = text.substr(0, end);
  const bool of_operator = end != text.size() || name.starts_with("aten::") || name.starts_with("autograd::");
  return {name, end == text.size() ? std::nullopt : number_behind(text, ", seq = "), of_operator};
}

std::string_view call_name(std::string_view text) {
  const std::size_t at = text.rfind("_v");
  if (at == std::string_view::npos || at + 2 == text.size()) return text;
  const bool version = text.find_first_not_of("0123456789", at + 2) == std::string_view::npos;
  return version ? text.substr(0, at) : text;
}

Texts::Texts(Database& database) {
  TableRows rows(database, "StringIds", {"id", "value"});
  while (rows.next()) {
    const auto id = rows.integer(0);
    if (!id) continue;
    const RangeText text = range_text(rows.text(1));
    const Names::Id name = names_.intern(text.name);
    if (name >= of_operator_.size()) of_operator_.resize(name + std::size_t{1});
    if (text.of_operator) of_operator_[name] = true;
    by_id_.emplace_back(*id, name);
    if (text.sequence) sequences_.emplace_back(*id, *text.sequence);
  }
  sort_by_id(by_id_);
  sort_by_id(sequences_);
}

Texts::Text Texts::at(std::optional<std::int64_t> id) const {
  const Names::Id* const name = id ? find_id(by_id_, *id) : nullptr;
  if (name == nullptr) return {};
  const std::int64_t* const sequence = find_id(sequences_, *id);
  return {*name, sequence == nullptr ? -1 : *sequence, of_operator_[*name]};
}

}  // namespace headrace::trace::nsight
