#include "headrace/profile/profile_json.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "profile/profile_fields.h"

namespace headrace::profile {
namespace {

template <class Number>
void put_within(Number& value, const Unit& unit) {
  if constexpr (std::is_floating_point_v<Number>) {
    value = std::isfinite(value) ? std::clamp(value, unit.least, unit.most) : unit.least;
  } else {
    if (static_cast<double>(value) > unit.most) value = static_cast<Number>(unit.most);
    if (static_cast<double>(value) < unit.least) value = static_cast<Number>(unit.least);
  }
}

template <Declared Struct>
void bound(Struct& of);

template <class T>
void bound(T& value, const Unit& unit, Null null) {
  if constexpr (Declared<T>) {
    bound(value);
  } else if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    if (null == Null::when_unset && !(value >= 0)) {
      value = static_cast<T>(-1);  // unknown, as is anything but a number
    } else {
      put_within(value, unit);
    }
  }
}
template <class T>
void bound(std::optional<T>& value, const Unit& unit, Null null) {
  if constexpr (std::is_floating_point_v<T>) {
    // An impossible figure is unknown if it may be.
    if (value && !(*value >= unit.least)) value.reset();
  }
  if (value) bound(*value, unit, null);
}
template <class T>
void bound(std::vector<T>& values, const Unit& unit, Null null) {
  for (T& value : values) bound(value, unit, null);
}

template <Declared Struct>
void bound(Struct& of) {
  figures_of(Of<Struct>{}, [&](const char* name, auto member, const Meaning& meaning) {
    bound(of.*member, meaning.unit_for(name), meaning.null);
  });
}

/// Whether `name` is one of the names in `list`, which are joined by ", ".
bool is_listed(std::string_view list, std::string_view name) {
  if (name.empty()) return false;
  for (std::size_t at = list.find(name); at != std::string_view::npos; at = list.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || (at >= 2 && list.substr(at - 2, 2) == ", ");
    if (begins && (end == list.size() || list.substr(end, 2) == ", ")) return true;
  }
  return false;
}

}  // namespace

void bound_figures(Profile& profile) {
  bound(profile);
  const auto is_nowhere = [&](int op) {
    return op < 0 || static_cast<std::size_t>(op) >= profile.operators.size();
  };
  for (QueueProfile& queue : profile.queues) {
    std::erase_if(queue.from_operators, is_nowhere);
    std::erase_if(queue.to_operators, is_nowhere);
  }
  if (profile.model) put_within_bounds(*profile.model, profile.operators.size());
}

void find_queue_ends(Profile& profile) {
  for (QueueProfile& queue : profile.queues) {
    if (queue.to_sink || !queue.from_operators.empty() || !queue.to_operators.empty()) continue;
    for (std::size_t i = 0; i < profile.operators.size(); ++i) {
      const std::string& name = profile.operators[i].name;
      if (is_listed(queue.from, name)) queue.from_operators.push_back(static_cast<int>(i));
      if (is_listed(queue.to, name)) queue.to_operators.push_back(static_cast<int>(i));
    }
    queue.to_sink = is_listed(queue.to, "sink");
  }
}

}  // namespace headrace::profile
