#include "headrace/profile/profile_json.h"

#include <nlohmann/json.hpp>

#include "headrace/profile/json_fields.h"
#include "profile/profile_fields.h"

namespace headrace::profile {

nlohmann::json parse_json(std::string_view text, const std::string& path) {
  // Figures are at most 6 levels deep; the bound keeps every later walk over the tree shallow.
  constexpr int kMaxDepth = 32;
  const auto shallow = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kMaxDepth) throw FormatError(path, 0, "at most 32 levels of nesting");
    return true;
  };
  try {
    return nlohmann::json::parse(text, shallow);
  } catch (const nlohmann::json::parse_error& error) {
    throw FormatError(path, error.byte, "JSON");
  } catch (const nlohmann::json::exception&) {
    throw FormatError(path, 0, "JSON with numbers that a double can hold");
  }
}

std::string dump_json(const nlohmann::json& tree, int indent) {
  return tree.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

nlohmann::json to_json(const Profile& profile) { return JsonFieldWriter::object_of(profile); }

Profile profile_from_tree(const nlohmann::json& tree) {
  Profile profile;
  JsonFieldReader reader(tree, "profile");
  fields_of(reader, profile);
  find_queue_ends(profile);
  return profile;
}

std::string profile_to_json(const Profile& profile, int indent) {
  return dump_json(to_json(profile), indent);
}

Profile profile_from_json(std::string_view text) {
  return profile_from_tree(parse_json(text, "profile JSON"));
}

}  // namespace headrace::profile
