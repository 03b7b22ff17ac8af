#include "headrace/analysis/device_memory/growth.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "analysis/device_memory/device_state.h"
#include "analysis/device_memory/marked_steps.h"
#include "analysis/device_memory/places.h"

namespace headrace::analysis::device_memory {
namespace {

/// The moments at which live bytes are compared, ascending: times, or, without marked steps, rows of events.
struct Moments {
  std::vector<std::int64_t> at;
  bool of_thirds = false;
  std::string note;
};

/// Nothing if the recording is too short to compare anything.
std::optional<Moments> moments_of(const memory::Snapshot& snapshot, const DeviceState& device,
                                  const MarkedSteps& steps) {
  constexpr std::uint32_t kMinEvents = 3;
  if (device.events.count < kMinEvents) return std::nullopt;
  const memory::Events& events = snapshot.events;
  const std::int64_t begin = events.time_us[device.events.first];
  const std::int64_t end = events.time_us[device.end() - 1];
  const std::string about = "device " + std::to_string(device.number) + ": ";
  Moments moments;
  std::string_view first;
  std::string_view last;
  for (const MarkedStep& step : steps.of(device.number)) {
    if (step.end_us < begin || step.end_us > end) continue;
    if (!moments.at.empty() && moments.at.back() == step.end_us) continue;
    if (moments.at.empty()) first = step.name;
    last = step.name;
    moments.at.push_back(step.end_us);
  }
  if (moments.at.size() >= 2) {
    moments.note = about + "compared at the ends of " + std::to_string(moments.at.size()) + " steps, " +
                   std::string(first) + " to " + std::string(last);
    return moments;
  }
  const std::int64_t third = device.events.count / 3;
  moments.of_thirds = true;
  moments.at = {device.events.first + third, device.events.first + 2 * third, device.end()};
  moments.note =
      about +
      "fewer than two marked steps end in the recording, so the least of each of its thirds is compared";
  return moments;
}

struct Growing {
  std::int64_t bytes = 0;
  std::int64_t least = 0;  ///< since the last moment
  std::int64_t first = 0;
  std::int64_t previous = 0;
  std::int64_t grew_in = 0;
  bool touched = false;
};

/// Live bytes by place while the events go by. A moment costs as much as the places that changed since the
/// last.
class LivePlaces {
 public:
  void add(std::uint32_t place, std::int64_t bytes) {
    if (place >= places_.size()) places_.resize(place + 1);
    Growing& growing = places_[place];
    growing.bytes += bytes;
    growing.least = std::min(growing.least, growing.bytes);
    if (growing.touched) return;
    growing.touched = true;
    touched_.push_back(place);
  }

  /// `least`: what each place held all the time since the last moment, so that what comes and goes does not count.
  void compare(bool least) {
    std::vector<std::uint32_t> still_above;
    for (const std::uint32_t place : touched_) {
      Growing& growing = places_[place];
      const std::int64_t bytes = least ? growing.least : growing.bytes;
      if (!began_) growing.first = bytes;
      if (began_ && bytes > growing.previous) ++growing.grew_in;
      growing.previous = bytes;
      growing.least = growing.bytes;
      growing.touched = bytes < growing.bytes;
      if (growing.touched) still_above.push_back(place);
    }
    touched_ = std::move(still_above);
    began_ = true;
  }

  /// Bytes held already are the least so far.
  void begin() {
    for (Growing& growing : places_) growing.least = growing.bytes;
  }

  const std::vector<Growing>& places() const noexcept { return places_; }

 private:
  std::vector<Growing> places_;
  std::vector<std::uint32_t> touched_;
  bool began_ = false;
};

LivePlaces follow(const memory::Snapshot& snapshot, const DeviceState& device, const Moments& moments,
                  Places& places) {
  const memory::Events& events = snapshot.events;
  LivePlaces live;
  for (const memory::Block* block : older_blocks(snapshot, device).live)
    live.add(places.of_stack(block->stack), block->requested_bytes);
  if (moments.of_thirds) live.begin();
  auto next = moments.at.begin();
  for (std::uint32_t row = device.events.first; row < device.end(); ++row) {
    const auto passed = [&](std::int64_t at) {
      return moments.of_thirds ? at <= row : at < events.time_us[row];
    };
    for (; next != moments.at.end() && passed(*next); ++next) live.compare(moments.of_thirds);
    const memory::Action action = events.action[row];
    if (action == memory::Action::alloc) live.add(places.of_stack(events.stack[row]), events.size[row]);
    const std::uint32_t alloc = events.other_end[row];
    if (action == memory::Action::free_completed && alloc != memory::kNone)
      live.add(places.of_stack(events.stack[alloc]), -events.size[alloc]);
  }
  for (; next != moments.at.end(); ++next) live.compare(moments.of_thirds);
  return live;
}

}  // namespace

Table growth(const memory::Snapshot& snapshot) {
  Rows<GrowthColumns> rows;
  Places places(snapshot);
  const MarkedSteps steps_of(snapshot);
  for (const DeviceState& device : devices_of(snapshot)) {
    const std::optional<Moments> moments = moments_of(snapshot, device, steps_of);
    if (!moments) {
      rows.note("device " + std::to_string(device.number) + ": too few recorded events to compare steps");
      continue;
    }
    const LivePlaces live = follow(snapshot, device, *moments, places);
    std::vector<std::uint32_t> grown;
    const auto growth_of = [&](std::uint32_t place) {
      return live.places()[place].previous - live.places()[place].first;
    };
    for (std::uint32_t place = 0; place < live.places().size(); ++place) {
      if (growth_of(place) > 0) grown.push_back(place);
    }
    std::sort(grown.begin(), grown.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(-growth_of(a), std::string_view(places.label(a))) <
             std::tuple(-growth_of(b), std::string_view(places.label(b)));
    });
    const auto steps = static_cast<std::int64_t>(moments->at.size()) - 1;
    for (const std::uint32_t place : grown) {
      const Growing& growing = live.places()[place];
      rows.add(device.number, places.label(place), growth_of(place),
               static_cast<double>(growth_of(place)) / static_cast<double>(steps), growing.grew_in, steps,
               growing.first, growing.previous, places.file(place));
    }
    rows.note(moments->note);
  }
  return rows.take();
}

}  // namespace headrace::analysis::device_memory
