#include "trace/xplane/nested_operations.h"

#include <algorithm>
#include <tuple>

namespace headrace::trace::xplane {

void NestedOperations::sort() {
  std::stable_sort(rows_.begin(), rows_.end(), [](const EventRow& a, const EventRow& b) {
    return std::tuple(a.start_ns, -a.end_ns) < std::tuple(b.start_ns, -b.end_ns);
  });
}

}  // namespace headrace::trace::xplane
