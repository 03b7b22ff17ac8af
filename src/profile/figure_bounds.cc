#include "headrace/profile/figure_bounds.h"

#include <algorithm>
#include <cmath>
#include <optional>
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
    // Where a figure may be unknown, one that cannot be is.
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

}  // namespace headrace::profile
