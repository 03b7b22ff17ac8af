// A word of a fixed list, as an enum, where another word may come: the kind of a custom operator, or what a
// report of a newer version says.
//
//     if (op.kind == OperatorKind::transfer) ...
//     op.kind = "tokenize";                       // kept and shown as it is; equal to no OperatorKind
//
// The enum's names_of() gives its words in order. Text is compared with nothing: a misspelt word would compile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::profile {

template <class Enum>
constexpr std::string_view name_of(Enum value) noexcept {
  return names_of(value)[static_cast<std::size_t>(value)];
}

template <class Enum>
class Word {
 public:
  Word() = default;  ///< no word: its text is empty
  Word(Enum known) : known_(known) {}
  Word(std::string_view text) {
    const auto names = names_of(Enum{});
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end()) {
      other_ = text;
    } else {
      known_ = static_cast<Enum>(found - names.begin());
    }
  }
  Word(const std::string& text) : Word(std::string_view(text)) {}
  Word(const char* text) : Word(std::string_view(text)) {}

  /// Empty for a word that the enum does not have.
  std::optional<Enum> known() const noexcept { return known_; }
  std::string text() const { return known_ ? std::string(name_of(*known_)) : other_; }
  bool empty() const noexcept { return !known_ && other_.empty(); }

  friend bool operator==(const Word& a, const Word& b) = default;
  friend bool operator==(const Word& word, Enum value) noexcept { return word.known_ == value; }
  friend bool operator==(const Word& word, std::string_view text) = delete;

 private:
  std::optional<Enum> known_;
  std::string other_;
};

template <class T>
inline constexpr bool kIsWord = false;
template <class Enum>
inline constexpr bool kIsWord<Word<Enum>> = true;

}  // namespace headrace::profile
