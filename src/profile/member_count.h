// How many members a struct has, so that a list of them can be checked against it.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

namespace headrace::profile {

template <class T>
constexpr bool kIsOptional = false;
template <class T>
constexpr bool kIsOptional<std::optional<T>> = true;

/// Converts to what any member of a struct may be. Not to an optional: that takes what its value takes.
struct Anything {
  template <class T>
    requires(!kIsOptional<T>)
  operator T() const;  // NOLINT: implicit, as an initialiser
};

template <class Struct, std::size_t... Index>
constexpr bool takes(std::index_sequence<Index...>) {
  return requires { Struct{(static_cast<void>(Index), Anything{})...}; };
}

/// Members of a struct (no base, constructors, plain arrays).
template <class Struct, std::size_t kSoFar = 0>
constexpr std::size_t members_of() {
  if constexpr (takes<Struct>(std::make_index_sequence<kSoFar + 1>{})) {
    return members_of<Struct, kSoFar + 1>();
  } else {
    return kSoFar;
  }
}

}  // namespace headrace::profile
