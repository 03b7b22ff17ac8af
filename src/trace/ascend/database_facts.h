// What the tables of a profile's database say about each other's numbers: texts, tasks, copies, connections.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/trace/names.h"
#include "trace/database.h"

namespace headrace::trace::ascend {

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
  DatabaseFacts(Database& database, Names& names);

  /// Of STRING_IDS; the empty text if it has no such number.
  Names::Id text_at(std::optional<std::int64_t> id) const;

  /// The name of the kernel that a task is, nothing for other tasks.
  std::optional<Names::Id> kernel(std::int64_t task) const;
  /// nullptr for other tasks.
  const CopyFacts* copy(std::int64_t task) const;
  const PartFacts* part(std::int64_t task) const;

  /// The connections (second) of a number in PYTORCH_API (first), in the order of the table.
  std::span<const Connection> connections(std::int64_t id) const;

 private:
  using Words = std::unordered_map<std::int64_t, Names::Id>;

  Words words_of(const char* table);
  void read_tasks();
  void read_copies();
  void read_parts();
  void read_connections();

  Database& database_;
  Names& names_;
  Words texts_;
  std::unordered_map<std::int64_t, Names::Id> kernels_;
  std::unordered_map<std::int64_t, CopyFacts> copies_;
  std::unordered_map<std::int64_t, PartFacts> parts_;
  std::vector<Connection> connections_;
};

}  // namespace headrace::trace::ascend
