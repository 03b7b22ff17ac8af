#include "headrace/analysis/device_memory/actions.h"

#include <array>

#include "analysis/device_memory/device_state.h"

namespace headrace::analysis::device_memory {

Table actions(const memory::Snapshot& snapshot) {
  Rows<ActionsColumns> rows;
  for (const DeviceState& device : devices_of(snapshot)) {
    std::array<std::int64_t, memory::kActions> counts{};
    std::array<std::int64_t, memory::kActions> bytes{};
    for (std::uint32_t row = device.events.first; row < device.end(); ++row) {
      const auto action = static_cast<std::size_t>(snapshot.events.action[row]);
      ++counts[action];
      bytes[action] += snapshot.events.size[row];
    }
    for (std::size_t action = 0; action < counts.size(); ++action) {
      if (counts[action] > 0)
        rows.add(device.number, memory::to_string(static_cast<memory::Action>(action)), counts[action],
                 bytes[action]);
    }
  }
  return rows.take();
}

}  // namespace headrace::analysis::device_memory
