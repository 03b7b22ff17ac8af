// Cross-references between the tables of a profile's database: texts, tasks, copies, connections.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/trace/names.h"
#include "trace/ascend/trace_view.h"
#include "trace/database.h"

namespace headrace::trace::ascend {

template <class Map>
const typename Map::mapped_type* find_in(const Map& map, std::int64_t key) {
  const auto at = map.find(key);
  return at == map.end() ? nullptr : &at->second;
}

inline Names::Id word_in(const std::unordered_map<std::int64_t, Names::Id>& words,
                         std::optional<std::int64_t> id) {
  const Names::Id* const word = id ? find_in(words, *id) : nullptr;
  return word == nullptr ? Names::missing : *word;
}

/// A copy (MEMCPY_INFO).
struct CopyFacts {
  std::int64_t bytes = -1;  ///< negative if unknown
  Names::Id name = Names::missing;
};

/// A part of a collective (COMMUNICATION_TASK_INFO).
struct PartFacts {
  Names::Id name = 0;
  std::int64_t bytes = -1;
  Names::Id transport = Names::missing;
  Names::Id link = Names::missing;
  std::int64_t plane = 0;
};

class DatabaseFacts {
 public:
  using Connection = std::pair<std::int64_t, std::int64_t>;

  /// Reads the tables; texts are interned in `names`, which must outlive this.
  DatabaseFacts(Database& database, Names& names) : database_(database), names_(names) {
    TableRows rows(database, "STRING_IDS", {"id", "value"});
    while (rows.next()) {
      if (const auto id = rows.integer(0)) texts_.insert_or_assign(*id, names.intern(rows.text(1)));
    }
    read_tasks();
    read_copies();
    read_parts();
    read_connections();
  }

  /// Text of STRING_IDS; empty if it has no such number.
  Names::Id text_at(std::optional<std::int64_t> id) const {
    const Names::Id* const text = id ? find_in(texts_, *id) : nullptr;
    return text == nullptr ? Names::Id{0} : *text;
  }

  /// The name of the kernel that a task is, nothing for other tasks.
  std::optional<Names::Id> kernel(std::int64_t task) const {
    const Names::Id* const name = find_in(kernels_, task);
    return name == nullptr ? std::nullopt : std::optional(*name);
  }
  /// nullptr for other tasks.
  const CopyFacts* copy(std::int64_t task) const { return find_in(copies_, task); }
  const PartFacts* part(std::int64_t task) const { return find_in(parts_, task); }

  /// The connections (second) of a number in PYTORCH_API (first), in the order of the table.
  std::span<const Connection> connections(std::int64_t id) const {
    const auto [first, last] =
        std::equal_range(connections_.begin(), connections_.end(), Connection(id, 0),
                         [](const Connection& a, const Connection& b) { return a.first < b.first; });
    return {first, last};
  }

 private:
  using Words = std::unordered_map<std::int64_t, Names::Id>;

  Words words_of(const char* table) {
    Words words;
    TableRows rows(database_, table, {"id", "name"});
    while (rows.next()) {
      if (const auto id = rows.integer(0)) words.insert_or_assign(*id, names_.intern(rows.text(1)));
    }
    return words;
  }
  void read_tasks() {
    TableRows tasks(database_, "COMPUTE_TASK_INFO", {"globalTaskId", "name"});
    while (tasks.next()) {
      if (const auto id = tasks.integer(0)) kernels_.insert_or_assign(*id, text_at(tasks.integer(1)));
    }
  }
  void read_copies() {
    const Words operations = words_of("ENUM_MEMCPY_OPERATION");
    TableRows copies(database_, "MEMCPY_INFO", {"globalTaskId", "size", "memcpyOperation"});
    while (copies.next()) {
      const auto id = copies.integer(0);
      if (!id) continue;
      CopyFacts copy{copies.integer(1).value_or(-1), Names::missing};
      const Names::Id operation = word_in(operations, copies.integer(2));
      if (operation != Names::missing) {
        const std::string_view name = name_of_copy(names_[operation]);
        if (!name.empty()) copy.name = names_.intern(name);
      }
      copies_.insert_or_assign(*id, copy);
    }
  }
  void read_parts() {
    const Words transports = words_of("ENUM_HCCL_TRANSPORT_TYPE");
    const Words links = words_of("ENUM_HCCL_LINK_TYPE");
    TableRows parts(database_, "COMMUNICATION_TASK_INFO",
                    {"globalTaskId", "taskType", "size", "transportType", "linkType", "planeId", "name"});
    while (parts.next()) {
      const auto id = parts.integer(0);
      if (!id) continue;
      // The name is that of the whole operation.
      const Names::Id kind = text_at(parts.is_null(1) ? parts.integer(6) : parts.integer(1));
      parts_.insert_or_assign(
          *id, PartFacts{kind, parts.integer(2).value_or(-1), word_in(transports, parts.integer(3)),
                         word_in(links, parts.integer(4)), parts.integer(5).value_or(0)});
    }
  }
  void read_connections() {
    TableRows rows(database_, "CONNECTION_IDS", {"id", "connectionId"});
    while (rows.next()) {
      const auto id = rows.integer(0);
      const auto connection = rows.integer(1);
      if (id && connection) connections_.emplace_back(*id, *connection);
    }
    std::stable_sort(connections_.begin(), connections_.end(),
                     [](const Connection& a, const Connection& b) { return a.first < b.first; });
  }

  Database& database_;
  Names& names_;
  Words texts_;
  std::unordered_map<std::int64_t, Names::Id> kernels_;
  std::unordered_map<std::int64_t, CopyFacts> copies_;
  std::unordered_map<std::int64_t, PartFacts> parts_;
  std::vector<Connection> connections_;
};

}  // namespace headrace::trace::ascend
