#include "trace/xplane/plane.h"

#include <utility>

#include "trace/wire.h"

namespace headrace::trace::xplane {
namespace {

// Numbers of fields; those of a map's entry are the same in every map.
enum PlaneField { kPlaneName = 2, kLines = 3, kEventMetadata = 4, kStatMetadata = 5, kPlaneStats = 6 };
enum LineField { kLineId = 1, kLineName = 2, kTimestamp = 3, kDisplayName = 11 };
enum EventField { kMetadataId = 1, kOffset = 2, kDuration = 3, kEventStats = 4, kOccurrences = 5 };
enum StatField { kStatId = 1, kText = 5, kBytes = 6, kReference = 7 };
enum MetadataField { kId = 1, kName = 2, kShownName = 4, kMetadataStats = 5 };
constexpr int kValueOfEntry = 2;

}  // namespace

Plane::Plane(std::string_view message) {
  // Names may stand behind what uses them.
  std::vector<std::string_view> metadata;
  std::vector<std::string_view> own;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == kPlaneName) name = fields.bytes();
    if (fields.number() == kLines) lines.push_back(fields.bytes());
    if (fields.number() == kEventMetadata) metadata.push_back(fields.bytes());
    if (fields.number() == kStatMetadata) read_stat_names(fields.bytes());
    if (fields.number() == kPlaneStats) own.push_back(fields.bytes());
  }
  damaged_ |= fields.damaged();
  for (const std::string_view entry : metadata) read_metadata(entry);
  for (const std::string_view stat : own) stats.push_back(stat_of(stat, damaged_));
}

void Plane::read_stat_names(std::string_view message) {
  Fields entry(message);
  while (entry.next()) {
    if (entry.number() != kValueOfEntry) continue;
    std::int64_t id = 0;
    std::string_view name_of_stat;
    Fields value(entry.bytes());
    while (value.next()) {
      if (value.number() == kId) id = value.integer();
      if (value.number() == kName) name_of_stat = value.bytes();
    }
    stat_names_.emplace(id, name_of_stat);
  }
  damaged_ |= entry.damaged();
}

void Plane::read_metadata(std::string_view message) {
  Fields entry(message);
  while (entry.next()) {
    if (entry.number() != kValueOfEntry) continue;
    std::int64_t id = 0;
    EventMetadata found;
    Fields value(entry.bytes());
    while (value.next()) {
      if (value.number() == kId) id = value.integer();
      if (value.number() == kName) found.name = value.bytes();
      if (value.number() == kShownName) found.display_name = value.bytes();
      if (value.number() == kMetadataStats) found.stats.push_back(stat_of(value.bytes(), damaged_));
    }
    damaged_ |= value.damaged();
    metadata_.emplace(id, std::move(found));
  }
  damaged_ |= entry.damaged();
}

const EventMetadata& Plane::metadata_of(std::int64_t id) const noexcept {
  const auto found = metadata_.find(id);
  return found == metadata_.end() ? unknown_ : found->second;
}

Stat Plane::stat_of(std::string_view message, bool& damaged) const noexcept {
  Stat stat;
  Fields fields(message);
  const auto name_of = [&](std::int64_t id) {
    const auto found = stat_names_.find(id);
    return found == stat_names_.end() ? std::string_view() : found->second;
  };
  while (fields.next()) {
    if (fields.number() == kStatId) {
      stat.name = name_of(fields.integer());
    } else if (fields.number() == kText || fields.number() == kBytes) {
      stat.text = fields.bytes();
    } else if (fields.number() == kReference) {
      stat.text = name_of(fields.integer());
    } else {
      stat.number = fields.integer();
    }
  }
  damaged |= fields.damaged();
  return stat;
}

LineHead head_of(std::string_view line) {
  LineHead head;
  std::string_view shown;
  Fields fields(line);
  while (fields.next()) {
    if (fields.number() == kLineId) head.id = fields.integer();
    if (fields.number() == kLineName) head.name = fields.bytes();
    if (fields.number() == kTimestamp) head.timestamp_ns = fields.integer();
    if (fields.number() == kDisplayName) shown = fields.bytes();
  }
  if (head.name.empty()) head.name = shown;
  return head;
}

bool read_event(std::string_view message, PlaneEvent& event) {
  event.metadata = event.offset_ps = event.duration_ps = 0;
  event.is_count = false;
  event.stats.clear();
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == kMetadataId) event.metadata = fields.integer();
    if (fields.number() == kOffset) event.offset_ps = fields.integer();
    if (fields.number() == kDuration) event.duration_ps = fields.integer();
    if (fields.number() == kOccurrences) event.is_count = true;
    if (fields.number() == kEventStats) event.stats.push_back(fields.bytes());
  }
  return !fields.damaged();
}

}  // namespace headrace::trace::xplane
