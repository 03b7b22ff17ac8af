// Numbers the lanes of a trace as they turn up, and collects what metadata events call them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/trace/columns.h"

namespace headrace::trace {

/// A `pid` or `tid`: a number, or the number of its text.
struct TrackId {
  std::int64_t value = 0;
  bool is_text = true;  // the empty text: an event without one
  bool operator==(const TrackId&) const = default;
};

class Lanes {
 public:
  explicit Lanes(Columns& columns) : columns_(columns) {}

  /// Events of one lane follow each other, so the last answer is tried first.
  std::uint32_t index_of(const TrackId& process, const TrackId& thread) {
    const Key key{process, thread};
    if (last_ != kNone && key == last_key_) return last_;
    last_key_ = key;
    return last_ = find_or_add(key);
  }

  /// Forgets the lanes from `first` on: events that turned out to be none came with them.
  void forget_from(std::uint32_t first) {
    std::erase_if(known_, [&](const auto& lane) { return lane.second >= first; });
    columns_.lanes.resize(first);
    last_ = kNone;
  }

  /// A metadata event of this lane; texts of unknown kinds are ignored.
  void label(std::uint32_t lane, std::string_view kind, std::string_view text) {
    Lane& labelled = columns_.lanes[lane];
    if (kind == "thread_name") labelled.thread_name = text;
    if (kind == "process_name") labelled.process_name = text;
    if (kind == "process_labels") labelled.process_labels = text;
  }

  /// Gives process names to all lanes of their process. Once, at the end.
  void finish() {
    std::unordered_map<std::string, std::pair<std::string, std::string>> processes;
    for (const Lane& lane : columns_.lanes) {
      auto& [name, labels] = processes[lane.process];
      if (!lane.process_name.empty()) name = lane.process_name;
      if (!lane.process_labels.empty()) labels = lane.process_labels;
    }
    for (Lane& lane : columns_.lanes)
      std::tie(lane.process_name, lane.process_labels) = processes[lane.process];
  }

 private:
  struct Key {
    TrackId process;
    TrackId thread;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      const auto process = static_cast<std::uint64_t>(key.process.value) * 2 + key.process.is_text;
      const auto thread = static_cast<std::uint64_t>(key.thread.value) * 2 + key.thread.is_text;
      const std::uint64_t mixed = (process * 0x9fb21c651e98df25ULL ^ thread) * 0x9fb21c651e98df25ULL;
      return static_cast<std::size_t>(mixed ^ mixed >> 32);
    }
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::uint32_t find_or_add(const Key& key) {
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
  std::string text_of(const TrackId& id) const {
    if (!id.is_text) return std::to_string(id.value);
    return std::string(columns_.names[static_cast<Names::Id>(id.value)]);
  }

  Columns& columns_;
  std::unordered_map<Key, std::uint32_t, KeyHash> known_;
  Key last_key_;
  std::uint32_t last_ = kNone;
};

}  // namespace headrace::trace
