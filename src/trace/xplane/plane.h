// One plane of an XPlane profile: its lines as they lie in the file, and what their events have in common.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headrace::trace::xplane {

/// A value beside an event, by the name of its kind. Texts lie in the file's bytes.
struct Stat {
  std::string_view name;
  std::int64_t number = 0;
  std::string_view text;
};

/// What all events of one kind share.
struct EventMetadata {
  std::string_view name;
  std::string_view display_name;
  std::vector<Stat> stats;
};

/// Views into the bytes that it was made of. Where a message is damaged, what stands before that is there.
class Plane {
 public:
  explicit Plane(std::string_view message);

  std::string_view name;
  std::vector<Stat> stats;
  std::vector<std::string_view> lines;  ///< messages

  /// Of events that name no metadata: without a name.
  const EventMetadata& metadata_of(std::int64_t id) const noexcept;
  Stat stat_of(std::string_view message, bool& damaged) const noexcept;
  bool damaged() const noexcept { return damaged_; }

 private:
  void read_stat_names(std::string_view message);
  void read_metadata(std::string_view message);

  std::unordered_map<std::int64_t, std::string_view> stat_names_;
  std::unordered_map<std::int64_t, EventMetadata> metadata_;
  EventMetadata unknown_;
  bool damaged_ = false;
};

/// Of a line, all but its events.
struct LineHead {
  std::int64_t id = 0;
  std::string_view name;
  std::int64_t timestamp_ns = 0;
};

LineHead head_of(std::string_view line);

/// An event; picoseconds since its line's time.
struct PlaneEvent {
  std::int64_t metadata = 0;
  std::int64_t offset_ps = 0;
  std::int64_t duration_ps = 0;
  /// It stands for several, at no time.
  bool is_count = false;
  std::vector<std::string_view> stats;  ///< messages
};

/// Into `event`, whose memory is used again. False if the message is damaged.
bool read_event(std::string_view message, PlaneEvent& event);

/// The number of the field of a line that holds its events.
inline constexpr int kEventOfLine = 4;

}  // namespace headrace::trace::xplane
