#include "headrace/profile/figure_bounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "profile/profile_fields.h"

namespace headrace::profile {
namespace {

struct Bound {
  std::string_view ending;  ///< of the figure's name
  double least;
  double most;
};

/// The first that fits holds.
constexpr Bound kBounds[] = {
    {"share", 0, 1},     {"busy", 0, 1},      {"blocked_in", 0, 1}, {"blocked_out", 0, 1},
    {"idle", 0, 1},      {"occupancy", 0, 1}, {"_per_s", 0, 1e15},  {"_s", 0, 3e8},  // ten years
    {"seconds", 0, 3e8}, {"cores", 0, 1e6},   {"workers", 1, 1e6},  {"levels_per_bin", 1, 1e6},
    {"", 0, 1e15},
};

/// Names of things, not amounts of them.
constexpr std::array<std::string_view, 6> kNames = {"pid", "tid", "rank", "index", "worker_id", "step"};

bool is_name(std::string_view name) { return std::find(kNames.begin(), kNames.end(), name) != kNames.end(); }

const Bound& bound_of(std::string_view name) {
  return *std::find_if(std::begin(kBounds), std::end(kBounds),
                       [&](const Bound& bound) { return name.ends_with(bound.ending); });
}

class Bounder {
 public:
  template <class T>
  void operator()(const char* name, T& value) {
    put_within(name, value);
  }

 private:
  template <class T>
  void put_within(const char* name, T& value) {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string> || std::is_enum_v<T>) {
      return;
    } else if constexpr (std::is_floating_point_v<T>) {
      const Bound& bound = bound_of(name);
      value = std::isfinite(value) ? std::clamp(value, bound.least, bound.most) : bound.least;
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (is_name(name)) return;
      const Bound& bound = bound_of(name);
      if (static_cast<double>(value) > bound.most) value = static_cast<T>(bound.most);
      if (static_cast<double>(value) < bound.least) value = static_cast<T>(bound.least);
    } else {
      Bounder inside;
      fields_of(inside, value);
    }
  }
  template <class T>
  void put_within(const char* name, std::optional<T>& value) {
    if constexpr (std::is_floating_point_v<T>) {
      // Where a figure may be unknown, one that cannot be is.
      if (value && !(*value >= bound_of(name).least)) value.reset();
    }
    if (value) put_within(name, *value);
  }
  template <class T>
  void put_within(const char* name, std::vector<T>& values) {
    for (T& value : values) put_within(name, value);
  }
  template <class T>
  void put_within(const char*, std::map<std::string, T>&) {}
  template <class... T>
  void put_within(const char*, std::variant<T...>&) {}
  /// Whose counts and indices have limits of their own.
  void put_within(const char*, LoaderModel&) {}
};

}  // namespace

void bound_figures(Profile& profile) {
  Bounder bounder;
  fields_of(bounder, profile);
  if (profile.model) profile::put_within_bounds(*profile.model, profile.operators.size());
}

}  // namespace headrace::profile
