#include "trace/lanes.h"

#include <string>
#include <tuple>
#include <utility>

namespace headrace::trace {

std::string Lanes::text_of(const TrackId& id) const {
  if (!id.is_text) return std::to_string(id.value);
  return std::string(columns_.names[static_cast<Names::Id>(id.value)]);
}

std::uint32_t Lanes::find_or_add(const Key& key) {
  const auto [at, added] = known_.try_emplace(key, static_cast<std::uint32_t>(columns_.lanes.size()));
  if (added) {
    Lane lane;
    lane.process = text_of(key.process);
    lane.thread = text_of(key.thread);
    if (!key.process.is_text) lane.pid = key.process.value;
    if (!key.thread.is_text) lane.tid = key.thread.value;
    columns_.lanes.push_back(std::move(lane));
  }
  return at->second;
}

void Lanes::forget_from(std::uint32_t first) {
  std::erase_if(known_, [&](const auto& lane) { return lane.second >= first; });
  columns_.lanes.resize(first);
  last_ = kNone;
}

void Lanes::label(std::uint32_t lane, std::string_view kind, std::string_view text) {
  Lane& labelled = columns_.lanes[lane];
  if (kind == "thread_name") labelled.thread_name = text;
  if (kind == "process_name") labelled.process_name = text;
  if (kind == "process_labels") labelled.process_labels = text;
}

void Lanes::finish() {
  std::unordered_map<std::string, std::pair<std::string, std::string>> processes;
  for (const Lane& lane : columns_.lanes) {
    auto& [name, labels] = processes[lane.process];
    if (!lane.process_name.empty()) name = lane.process_name;
    if (!lane.process_labels.empty()) labels = lane.process_labels;
  }
  for (Lane& lane : columns_.lanes)
    std::tie(lane.process_name, lane.process_labels) = processes[lane.process];
}

}  // namespace headrace::trace
