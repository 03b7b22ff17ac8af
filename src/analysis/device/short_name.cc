#include "headrace/analysis/device/short_name.h"

#include <algorithm>
#include <cstddef>

#include "headrace/analysis/device/kernel_kind.h"

namespace headrace::analysis::device {

std::string short_name(std::string_view name) {
  if (name.find_first_of("<(") == std::string_view::npos || kind_of_kernel(name) == KernelKind::memory)
    return std::string(name);
  std::string outside;
  std::string open;  // the brackets around the current place
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '-' && i + 1 < name.size() && name[i + 1] == '>') {
      ++i;  // an arrow closes nothing
    } else if (c == '<' || c == '(') {
      open += c;
    } else if (!open.empty() && ((c == '>' && open.back() == '<') || (c == ')' && open.back() == '('))) {
      open.pop_back();
    } else if (open.empty()) {
      outside += c;
    }
  }
  // ROCm names the copy of a kernel that it runs: "f(int) [clone .kd]".
  outside.resize(std::min(outside.size(), outside.find(" [clone ")));
  const std::size_t last = outside.find_last_not_of(' ');
  if (last == std::string::npos) return std::string(name);
  outside.resize(last + 1);
  const std::size_t space = outside.rfind(' ');
  return space == std::string::npos ? outside : outside.substr(space + 1);
}

}  // namespace headrace::analysis::device
