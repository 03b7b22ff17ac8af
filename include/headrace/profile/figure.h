// How a figure of a profile is declared: once, beside its struct (profile.h).
//
//     struct Startup {
//       double first_batch_s = 0;
//     };
//     constexpr About about(Of<Startup>) { return {"Startup", "Time that is kept out of everything else."}; }
//     template <class Visit>
//     constexpr void figures_of(Of<Startup>, Visit&& figure) {
//       figure("first_batch_s", &Startup::first_batch_s, {"From iter() to the first batch."});
//     }
//
// JSON in both directions (profile_json.h), bounds (figure_bounds.h), the page docs/figures.md and Python's
// classes all come from that declaration. A member without one does not compile.
#pragma once

#include <string_view>

namespace headrace::profile {

/// Names the struct whose figures are wanted; a tag for overloads.
template <class Struct>
struct Of {};

/// A struct's name in Python and in the documentation, and what it holds.
struct About {
  const char* name;
  const char* says;
};

/// Unit of a number, and the least and most that it can be in any run.
struct Unit {
  const char* name;
  double least;
  double most;
};

inline constexpr Unit kSeconds{"s", 0, 3e8};  // ten years
inline constexpr Unit kShare{"share", 0, 1};
inline constexpr Unit kBytes{"bytes", 0, 1e15};
inline constexpr Unit kBytesPerSecond{"bytes/s", 0, 1e15};
inline constexpr Unit kCores{"cores", 0, 1e6};
inline constexpr Unit kCount{"", 0, 1e15};
inline constexpr Unit kOneOrMore{"", 1, 1e6};
/// The number is a name (a process id, an index): any value goes.
inline constexpr Unit kName{"", -1e300, 1e300};

/// The unit given by the ending of a figure's name.
constexpr Unit unit_of(std::string_view name) {
  if (name.ends_with("bytes_per_s")) return kBytesPerSecond;
  if (name.ends_with("_s")) return kSeconds;
  if (name.ends_with("share")) return kShare;
  if (name.ends_with("bytes")) return kBytes;
  return kCount;
}

/// When a plain member is written as null: if a negative number or an empty text means "unknown".
enum class Null : bool { never, when_unset };

/// Rule for a figure where two structs are made one (a worker's epochs): totals are added.
enum class Fold : bool { none, sum };

/// How to read a figure, in a sentence; its unit if the name does not show it.
struct Meaning {
  const char* says;
  const Unit* unit = nullptr;  ///< null: unit_of(name)
  Null null = Null::never;
  Fold fold = Fold::none;

  constexpr Unit unit_for(const char* name) const { return unit != nullptr ? *unit : unit_of(name); }
};

}  // namespace headrace::profile
