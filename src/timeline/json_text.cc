#include "headrace/timeline/json_text.h"

#include <nlohmann/json.hpp>

#include "headrace/profile/json_fields.h"

namespace headrace::timeline {

std::string json_text(std::string_view text) { return profile::dump_json(text, -1); }

}  // namespace headrace::timeline
