#include "headrace/analysis/device_memory/over_time.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "analysis/device_memory/device_state.h"
#include "analysis/device_memory/places.h"

namespace headrace::analysis::device_memory {
namespace {

/// The highest event of each part.
std::vector<std::uint32_t> highest_of_parts(const memory::Events& events, const DeviceState& device,
                                            std::size_t parts) {
  std::vector<std::uint32_t> rows;
  std::int64_t level = 0;
  std::int64_t highest = 0;
  for (std::uint32_t i = 0; i < device.events.count; ++i) {
    const std::uint32_t row = device.events.first + i;
    if (events.action[row] == memory::Action::alloc) level += events.size[row];
    if (events.action[row] == memory::Action::free_completed) level -= events.size[row];
    const std::size_t part = std::size_t{i} * parts / device.events.count;
    if (part == rows.size()) {
      rows.push_back(row);
      highest = level;
    } else if (level > highest) {
      rows.back() = row;
      highest = level;
    }
  }
  return rows;
}

/// Bytes of the shown places while the events go by; the last is "others".
class ShownPlaces {
 public:
  ShownPlaces(const memory::Snapshot& snapshot, const DeviceState& device, Places& places, std::size_t most)
      : events_(snapshot.events), places_(places) {
    for (const HeldAtPeak& held : held_at_peak(snapshot, device, places)) {
      if (labels_.size() == most) break;
      slots_.emplace(held.place, labels_.size());
      labels_.push_back(places.label(held.place));
    }
    labels_.emplace_back("others");
    bytes_.resize(labels_.size());
    const OlderBlocks older = older_blocks(snapshot, device);
    for (const memory::Block* block : older.live)
      slot(places.of_stack(block->stack)) += block->requested_bytes;
    slot(places.named(kBeforeRecording)) += older.freed_bytes;
  }

  void apply(std::uint32_t row) {
    const std::uint32_t alloc = events_.other_end[row];
    if (events_.action[row] == memory::Action::alloc) {
      slot(places_.of_stack(events_.stack[row])) += events_.size[row];
    } else if (events_.action[row] == memory::Action::free_completed) {
      const bool older = alloc == memory::kNone;
      const std::uint32_t place =
          older ? places_.named(kBeforeRecording) : places_.of_stack(events_.stack[alloc]);
      slot(place) -= events_.size[older ? row : alloc];
    }
  }

  const std::vector<std::string>& labels() const noexcept { return labels_; }
  const std::vector<std::int64_t>& bytes() const noexcept { return bytes_; }

 private:
  std::int64_t& slot(std::uint32_t place) {
    const auto found = slots_.find(place);
    return found == slots_.end() ? bytes_.back() : bytes_[found->second];
  }

  const memory::Events& events_;
  Places& places_;
  std::map<std::uint32_t, std::size_t> slots_;
  std::vector<std::string> labels_;
  std::vector<std::int64_t> bytes_;
};

}  // namespace

Table over_time(const memory::Snapshot& snapshot, const OverTimeOptions& options) {
  const memory::Events& events = snapshot.events;
  Rows<OverTimeColumns> rows;
  Places places(snapshot);
  for (const DeviceState& device : devices_of(snapshot)) {
    if (device.events.count == 0 || options.moments == 0) continue;
    const std::size_t parts = std::min<std::size_t>(options.moments, device.events.count);
    const std::vector<std::uint32_t> moments = highest_of_parts(events, device, parts);
    ShownPlaces shown(snapshot, device, places, options.places);
    std::uint32_t next = device.events.first;
    for (const std::uint32_t moment : moments) {
      while (next <= moment) shown.apply(next++);
      for (std::size_t i = 0; i < shown.labels().size(); ++i)
        rows.add(device.number, moment - device.events.first, events.time_us[moment] * 1000,
                 shown.labels()[i], shown.bytes()[i]);
    }
  }
  return rows.take();
}

}  // namespace headrace::analysis::device_memory
