// Goes over the declared figures of a struct (figure.h) by name and value, as JSON has them. For the bodies
// in src/profile.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::profile {

template <class Struct>
concept Declared = requires { about(Of<std::remove_const_t<Struct>>{}); };

/// A plain value whose unset form is null in JSON.
template <class F, class T>
void field_or_null(F& field, const char* name, T& value) {
  using Plain = std::remove_const_t<T>;
  std::optional<Plain> present;
  if constexpr (std::is_same_v<Plain, std::string>) {
    if (!value.empty()) present = value;
    field(name, present);
    if constexpr (!std::is_const_v<T>) value = std::move(present).value_or("");
  } else {
    if (value >= 0) present = value;
    field(name, present);
    if constexpr (!std::is_const_v<T>) value = present.value_or(-1);
  }
}

/// A list of parameters is one object in JSON: settings["batch_size"] is how they are looked up.
template <class F, class Settings>
void settings_as_object(F& field, const char* name, Settings& settings) {
  std::map<std::string, std::string> values;
  for (const Setting& setting : settings) values[setting.parameter] = setting.value;
  field(name, values);
  if constexpr (!std::is_const_v<Settings>) {
    settings.clear();
    for (auto& [parameter, value] : values) settings.push_back({parameter, std::move(value)});
  }
}

/// Calls `field(name, value)` for each figure; of a const struct to write it, of a mutable one to read it.
template <class F, Declared Struct>
void fields_of(F& field, Struct& of) {
  figures_of(Of<std::remove_const_t<Struct>>{}, [&](const char* name, auto member, const Meaning& meaning) {
    auto& value = of.*member;
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::vector<Setting>>) {
      settings_as_object(field, name, value);
    } else if constexpr (std::is_same_v<Value, std::string> || std::is_signed_v<Value>) {
      meaning.null == Null::when_unset ? field_or_null(field, name, value) : field(name, value);
    } else {
      field(name, value);
    }
  });
}

/// Adds what `from` counted; a sum of which a part is unknown is that of the rest.
template <Declared Struct>
void add_up(Struct& to, const Struct& from) {
  const auto add = []<class T>(T& sum, const T& more) {
    if constexpr (std::is_arithmetic_v<T>) {
      sum += more;
    } else if constexpr (requires { *sum += *more; }) {
      if (more) sum = sum.value_or(0) + *more;
    }
  };
  figures_of(Of<Struct>{}, [&](const char*, auto member, const Meaning& meaning) {
    if (meaning.fold == Fold::sum) add(to.*member, from.*member);
  });
}

}  // namespace headrace::profile
