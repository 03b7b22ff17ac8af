// A Profile as JSON, both ways: what a saved report holds, and what a verdict can be computed from later; checks
// of one from elsewhere.
//
//     std::string text = profile::profile_to_json(recorded);
//     profile::Profile same = profile::profile_from_json(text);
//
// Names are those of the structs in profile.h, except `op`, which is "operator". Seconds stay seconds; an
// empty optional, and a number that is not finite, is null. Finite numbers read back bit for bit.
#pragma once

#include <string>
#include <string_view>

#include "headrace/profile/profile.h"

namespace headrace::profile {

/// Declarations of all figures as JSON: a list of structs, each after those that it is made of.
///
///     [{"name", "says", "figures": [{"name", "type", "unit", "least", "most", "default", "says"}]}]
///
/// "type" is a JSON type or another struct's name ("struct": true). "list" and "null" are true if a figure
/// is a list, or may be null.
std::string profile_schema(int indent = -1);

/// `indent` < 0: one line.
std::string profile_to_json(const Profile& profile, int indent = -1);

/// Missing and null fields keep their defaults, unknown ones are ignored. Numbers are taken as they are,
/// absurd ones included: the diagnosis bounds them. Any other bytes throw a FormatError, with the name of the
/// field whose type is wrong, or the byte offset where the text is not JSON.
Profile profile_from_json(std::string_view text);

/// Puts every figure within the bounds of its kind, which its name tells: a share is 0 to 1, seconds are not
/// negative, a count is not beyond what anybody counts to. What is no number becomes 0, or unknown if the
/// figure may be. A profile that a recorder made stays as it is.
void bound_figures(Profile& profile);

/// Fills in `from_operators`, `to_operators` and `to_sink` of each queue that has none of them, from its
/// `from` and `to`: reports that were saved before those figures existed have the names alone.
void find_queue_ends(Profile& profile);

}  // namespace headrace::profile
