#include "trace/ascend/trace_view.h"

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/trace/ascend/categories.h"
#include "headrace/trace/event_kind.h"

namespace headrace::trace::ascend {
namespace {

/// Role of a row of the timeline.
enum class LaneRole : std::uint8_t { foreign, host, calls, tasks, collectives, parts, overlap };

LaneRole role_of(const Lane& lane) noexcept {
  const std::string_view process = lane.process_name;
  if (process.starts_with("Ascend Hardware")) return LaneRole::tasks;
  if (process == "CANN") return LaneRole::calls;
  if (process.starts_with("Overlap Analysis")) return LaneRole::overlap;
  if (process == "HCCL" || process.starts_with("Communication"))
    return lane.thread_name.starts_with("Plane") ? LaneRole::parts : LaneRole::collectives;
  return lane.process_labels == "CPU" ? LaneRole::host : LaneRole::foreign;
}

std::vector<LaneRole> roles_of(const std::vector<Lane>& lanes) {
  std::vector<LaneRole> roles;
  roles.reserve(lanes.size());
  for (const Lane& lane : lanes) roles.push_back(role_of(lane));
  return roles;
}

bool is_ascend(const std::vector<LaneRole>& roles) noexcept {
  for (const LaneRole role : roles) {
    if (role == LaneRole::tasks || role == LaneRole::calls) return true;
  }
  return false;
}

/// msprof makes process ids up: the real one, ten bits higher, then the place of the row in the view, and in
/// the last five bits the device's number.
constexpr std::int64_t kDeviceBits = 31;
constexpr std::int64_t kFirstMadeUp = 1 << 10;

class Adoption {
 public:
  Adoption(Columns& columns, std::vector<LaneRole> roles) : columns_(columns), roles_(std::move(roles)) {}

  void run() {
    type_ = columns_.argument("Task Type");
    direction_ = columns_.argument("memcpy direction");
    find_streams();
    categorise();
    move_calls();
    number_devices();
  }

 private:
  LaneRole role(Row row) const { return roles_[columns_.lane[row]]; }

  /// The stream of the tasks that each collective consists of, by its connection.
  void find_streams() {
    for (Row row = 0; row < columns_.size(); ++row) {
      if (role(row) == LaneRole::collectives && columns_.correlation[row] > 0)
        stream_of_.try_emplace(columns_.correlation[row], kAbsent);
    }
    if (stream_of_.empty()) return;
    for (Row row = 0; row < columns_.size(); ++row) {
      if (role(row) != LaneRole::tasks) continue;
      const auto known = stream_of_.find(columns_.correlation[row]);
      if (known != stream_of_.end() && known->second == kAbsent) known->second = columns_.stream[row];
    }
  }

  void categorise() {
    CompactIntegers streams;
    for (Row row = 0; row < columns_.size(); ++row) {
      std::int64_t stream = columns_.stream[row];
      if (columns_.phase[row] == 'X') {
        const std::string_view category = category_of(row);
        if (category == kCopy) name_copy(row);
        if (!category.empty()) columns_.category[row] = columns_.names.intern(category);
        if (category == kCollective) {
          const auto known = stream_of_.find(columns_.correlation[row]);
          if (known != stream_of_.end() && known->second != kAbsent) stream = known->second;
        }
      }
      streams.push_back(stream);
    }
    columns_.stream = std::move(streams);
  }

  std::string_view category_of(Row row) const {
    const std::string_view type = text_at(columns_, type_, row);
    // Headrace's own files have categories, and no types of tasks.
    if (type.empty() && kind_of_category(columns_.category_of(row)) != EventKind::other) return {};
    switch (role(row)) {
      case LaneRole::tasks:
        return category_of_task(type, columns_.name_of(row));
      case LaneRole::calls:
        return kCall;
      case LaneRole::collectives:
        return kCollective;
      case LaneRole::parts:
        return kTask;
      case LaneRole::overlap:
        return kOverlap;
      case LaneRole::host:
        if (columns_.category_of(row).empty()) return kOperator;
        break;
      case LaneRole::foreign:
        break;
    }
    return {};
  }

  void name_copy(Row row) {
    const std::string_view name = name_of_copy(text_at(columns_, direction_, row));
    if (!name.empty()) columns_.name[row] = columns_.names.intern(name);
  }

  /// Thread ids are unique on a machine, so a framework's row of the same number is the same thread.
  void move_calls() {
    std::unordered_map<std::int64_t, std::uint32_t> of_thread;
    for (std::uint32_t lane = 0; lane < roles_.size(); ++lane) {
      if (roles_[lane] == LaneRole::host && columns_.lanes[lane].tid > 0)
        of_thread.try_emplace(columns_.lanes[lane].tid, lane);
    }
    std::vector<std::uint32_t> moved(roles_.size());
    for (std::uint32_t lane = 0; lane < roles_.size(); ++lane) {
      moved[lane] = lane;
      const auto thread = of_thread.find(columns_.lanes[lane].tid);
      if (roles_[lane] == LaneRole::calls && thread != of_thread.end()) moved[lane] = thread->second;
    }
    decltype(columns_.lane) lanes;
    for (const std::uint32_t lane : columns_.lane) lanes.push_back(moved[lane]);
    columns_.lane = std::move(lanes);
  }

  void number_devices() {
    ArgumentColumn* device = columns_.argument("device");
    if (device == nullptr || !device->rows.empty()) return;
    for (Row row = 0; row < columns_.size(); ++row) {
      const LaneRole lane = role(row);
      const std::int64_t pid = columns_.lanes[columns_.lane[row]].pid;
      if ((lane != LaneRole::tasks && lane != LaneRole::collectives) || pid < kFirstMadeUp) continue;
      if (columns_.phase[row] != 'X') continue;
      device->rows.push_back(row);
      device->integers.push_back(pid & kDeviceBits);
    }
  }

  Columns& columns_;
  std::vector<LaneRole> roles_;
  const ArgumentColumn* type_ = nullptr;
  const ArgumentColumn* direction_ = nullptr;
  std::unordered_map<std::int64_t, std::int64_t> stream_of_;
};

}  // namespace

void adopt_trace_view(Columns& columns) {
  std::vector<LaneRole> roles = roles_of(columns.lanes);
  if (is_ascend(roles)) Adoption(columns, std::move(roles)).run();
}

}  // namespace headrace::trace::ascend
