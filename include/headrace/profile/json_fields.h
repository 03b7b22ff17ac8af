// One list of fields per struct, used to write it as JSON and to read it back; for the bodies of *_json.cc.
//
//     template <class F, class T> void fields_of(F& field, T& queue) { field("name", queue.name); ... }
//
// JsonFieldWriter and JsonFieldReader are the two `field`s. A struct is nested by a fields_of() of its own,
// found by argument-dependent lookup; an enum has a names_of() that gives
// its words in order. Not thread-safe, no state beyond one call.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "headrace/profile/errors.h"
#include "headrace/profile/word.h"

namespace headrace::profile {

/// Writes each field. Numbers read back bit for bit; what is not finite or not known is null.
class JsonFieldWriter {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    object_[name] = tree(value);
  }

  template <class T>
  static nlohmann::json object_of(const T& value) {
    JsonFieldWriter writer;
    fields_of(writer, value);
    return std::move(writer.object_);
  }

 private:
  template <class T>
  static nlohmann::json tree(const T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else if constexpr (std::is_enum_v<T>) {
      return name_of(value);
    } else if constexpr (kIsWord<T>) {
      return value.text();
    } else {
      return object_of(value);
    }
  }
  template <class T>
  static nlohmann::json tree(const std::optional<T>& value) {
    return value ? tree(*value) : nlohmann::json(nullptr);
  }
  template <class T>
  static nlohmann::json tree(const std::vector<T>& values) {
    nlohmann::json array = nlohmann::json::array();
    for (const T& value : values) array.push_back(tree(value));
    return array;
  }
  template <class T>
  static nlohmann::json tree(const std::map<std::string, T>& values) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& [key, value] : values) object[key] = tree(value);
    return object;
  }
  static nlohmann::json tree(std::monostate) { return nullptr; }
  template <class... T>
  static nlohmann::json tree(const std::variant<T...>& value) {
    return std::visit([](const auto& held) { return tree(held); }, value);
  }

  nlohmann::json object_ = nlohmann::json::object();
};

/// Reads each field. A field that is missing keeps its default (a saved report of an older version reads), as
/// does one that is null, unless it is optional: then it is empty. One of another type is a FormatError that names it. Numbers too large for an integer field are
/// clamped.
class JsonFieldReader {
 public:
  JsonFieldReader(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {
    if (!object_.is_object()) fail(where_, "an object");
  }

  template <class T>
  void operator()(const char* name, T& value) {
    auto found = object_.find(name);
    if (found == object_.end()) found = object_.find(older_name(name));
    if (found == object_.end()) return;
    if (found->is_null()) {
      if constexpr (requires { value.has_value(); }) value.reset();
      return;
    }
    read(*found, where_ + "." + name, value);
  }

 private:
  /// The name in reports of earlier versions.
  static std::string_view older_name(std::string_view name) { return name == "parameters" ? "knobs" : name; }

  [[noreturn]] static void fail(const std::string& where, const char* expected) {
    throw FormatError("JSON", 0, std::string(expected) + " at " + where);
  }

  template <class T>
  static void read(const nlohmann::json& tree, const std::string& where, T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!tree.is_boolean()) fail(where, "true or false");
      value = tree.get<bool>();
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (!tree.is_number()) fail(where, "a number");
      value = number<T>(tree);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!tree.is_string()) fail(where, "a string");
      value = tree.get<std::string>();
    } else if constexpr (std::is_enum_v<T>) {
      const auto names = names_of(value);
      const auto found =
          tree.is_string() ? std::find(names.begin(), names.end(), tree.get<std::string>()) : names.end();
      if (found == names.end()) fail(where, "one of its words");
      value = static_cast<T>(found - names.begin());
    } else if constexpr (kIsWord<T>) {
      if (!tree.is_string()) fail(where, "a string");
      value = tree.get<std::string>();
    } else {
      JsonFieldReader reader(tree, where);
      fields_of(reader, value);
    }
  }
  template <class T>
  static void read(const nlohmann::json& tree, const std::string& where, std::optional<T>& value) {
    T present{};
    read(tree, where, present);
    value = std::move(present);
  }
  template <class T>
  static void read(const nlohmann::json& tree, const std::string& where, std::vector<T>& values) {
    if (!tree.is_array()) fail(where, "an array");
    values.clear();
    values.reserve(tree.size());
    for (std::size_t i = 0; i < tree.size(); ++i) {
      T value{};
      if (!tree[i].is_null()) read(tree[i], where + "[" + std::to_string(i) + "]", value);
      values.push_back(std::move(value));
    }
  }
  template <class T>
  static void read(const nlohmann::json& tree, const std::string& where, std::map<std::string, T>& values) {
    if (!tree.is_object()) fail(where, "an object");
    for (const auto& [key, item] : tree.items()) {
      if (!item.is_null()) read(item, std::string(where).append(".").append(key), values[key]);
    }
  }

  /// The alternative of the JSON value's own type.
  template <class... T>
  static void read(const nlohmann::json& tree, const std::string& where, std::variant<T...>& value) {
    if (tree.is_boolean()) {
      value = tree.get<bool>();
    } else if (tree.is_number()) {
      value = number<std::int64_t>(tree);
    } else if (tree.is_string()) {
      value = tree.get<std::string>();
    } else {
      fail(where, "true, false, a number or a string");
    }
  }

  template <class T>
  static T number(const nlohmann::json& tree) {
    if constexpr (std::is_floating_point_v<T>) {
      return tree.get<T>();
    } else {
      if (tree.is_number_unsigned()) return clamped<T>(tree.get<std::uint64_t>());
      if (tree.is_number_integer()) return clamped<T>(tree.get<std::int64_t>());
      const double value = tree.get<double>();
      if (!(value > static_cast<double>(std::numeric_limits<T>::min()))) return std::numeric_limits<T>::min();
      if (!(value < static_cast<double>(std::numeric_limits<T>::max()))) return std::numeric_limits<T>::max();
      return static_cast<T>(value);
    }
  }
  template <class T, class Wide>
  static T clamped(Wide value) {
    if (std::cmp_less(value, std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (std::cmp_greater(value, std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(value);
  }

  const nlohmann::json& object_;
  std::string where_;
};

/// Parses text; FormatError (with the byte) for what is not a JSON, is nested deeper than 32, or has numbers
/// beyond a double.
nlohmann::json parse_json(std::string_view text, const std::string& path);

/// A Profile as a document, both ways: what profile_json.h writes and reads as text.
struct Profile;
nlohmann::json to_json(const Profile& profile);
Profile profile_from_tree(const nlohmann::json& tree);

/// Writes text; bytes that are not UTF-8 become U+FFFD. `indent` < 0: one line.
std::string dump_json(const nlohmann::json& tree, int indent);

}  // namespace headrace::profile
