#include "json_document.h"

#include <cmath>
#include <limits>

#include "headrace/profile/errors.h"

namespace headrace::loader_files {

JsonDocument::JsonDocument(std::string_view text, const std::string& path) {
  simdjson::error_code error = parser_.parse(text.data(), text.size(), true).get(root_);
  if (error != simdjson::SUCCESS)
    throw FormatError(path, 0, std::string("JSON (") + simdjson::error_message(error) + ")");
}

std::optional<Json> member(Json of, std::string_view name) {
  simdjson::dom::object object;
  Json found;
  if (of.get(object) != simdjson::SUCCESS || object.at_key(name).get(found) != simdjson::SUCCESS ||
      found.is_null())
    return std::nullopt;
  return found;
}

std::optional<simdjson::dom::array> array_of(Json of, std::string_view name) {
  const std::optional<Json> found = member(of, name);
  simdjson::dom::array array;
  if (!found || found->get(array) != simdjson::SUCCESS) return std::nullopt;
  return array;
}

std::optional<std::int64_t> integer_of(Json value) {
  std::int64_t whole = 0;
  if (value.get(whole) == simdjson::SUCCESS) return whole;
  double real = 0;
  if (value.get(real) != simdjson::SUCCESS || !(std::abs(real) < 9e15)) return std::nullopt;
  return static_cast<std::int64_t>(real);
}

std::optional<double> number_of(Json value) {
  double real = 0;
  if (value.get(real) != simdjson::SUCCESS || !std::isfinite(real)) return std::nullopt;
  return real;
}

std::optional<std::string> text_of(Json value) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return std::nullopt;
  return std::string(text);
}

std::optional<std::vector<double>> numbers_of(Json of, std::string_view name) {
  const std::optional<simdjson::dom::array> array = array_of(of, name);
  if (!array) return std::nullopt;
  std::vector<double> values;
  for (const Json each : *array)
    values.push_back(number_of(each).value_or(std::numeric_limits<double>::quiet_NaN()));
  return values;
}

}  // namespace headrace::loader_files
