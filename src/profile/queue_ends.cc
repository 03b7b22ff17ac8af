#include "headrace/profile/queue_ends.h"

#include <string_view>

namespace headrace::profile {
namespace {

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
