// A JSON document as the readers of this floor look at it: what is missing or of another type is empty.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::loader_files {

using Json = simdjson::dom::element;

/// Operators of a pipeline: one that a person wrote has tens.
inline constexpr std::size_t kMaxOperators = 4096;

/// Keeps the memory that its elements point to.
class JsonDocument {
 public:
  /// FormatError for what is no JSON.
  JsonDocument(std::string_view text, const std::string& path);
  Json root() const noexcept { return root_; }

 private:
  simdjson::dom::parser parser_;
  Json root_;
};

/// The member of an object; empty if there is none, if it is null, or if `of` is no object.
std::optional<Json> member(Json of, std::string_view name);
std::optional<simdjson::dom::array> array_of(Json of, std::string_view name);
std::optional<std::int64_t> integer_of(Json value);
std::optional<double> number_of(Json value);
std::optional<std::string> text_of(Json value);

/// A list of numbers; empty if there is none. What is no number in it is NaN.
std::optional<std::vector<double>> numbers_of(Json of, std::string_view name);

}  // namespace headrace::loader_files
