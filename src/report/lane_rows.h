// The rows of the picture in which every worker has a lane: who gets one, and what stands in each column.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "headrace/profile/history.h"
#include "headrace/report/page.h"

namespace headrace::report {

/// Nanoseconds on the run's clock.
struct Span {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  std::int64_t length_ns() const { return end_ns - begin_ns; }
};

/// Neighbouring columns of one look: [begin, end) in columns, and the class of their colour.
struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string css_class;
};

struct LaneRow {
  std::string name;
  std::vector<Piece> pieces;
};

/// A loop in a history.
struct LoopLanes {
  const profile::History* history = nullptr;
  const profile::LoopHistory* loop = nullptr;
  int loader = -1;                                    ///< its index in `history->loops`
  Span whole;                                         ///< from its first GetNext to its last sign of life
  std::vector<const profile::WorkerStates*> workers;  ///< in the order of the pipeline
  std::vector<std::string> names;                     ///< of the workers
};

/// The lanes of loader `name`; `loop` is null where it has no GetNext in the history.
LoopLanes lanes_of(const profile::History& history, const std::string& name);

/// GetNext, workers, queues, from `shown` cut into so many columns. A column has the look of what took the
/// longest in it. At most `most` workers and queues.
std::vector<LaneRow> lane_rows(const LoopLanes& lanes, Span shown, std::size_t columns, std::size_t most);

/// The longest GetNext calls that had to wait for their batch, longest first. Calls that the history has
/// merged, and the first ones of epochs, are not among them.
std::vector<profile::GetNextCall> longest_calls(const profile::LoopHistory& loop, std::size_t most);

/// An operator and the share of `during` for which at least one of its workers was busy in it, most first.
struct BusyOperator {
  std::string name;
  double share = 0;
};
std::vector<BusyOperator> busy_operators(const LoopLanes& lanes, Span during);

/// Rows of all of it, and close up around the longest calls; times are seconds since the first GetNext. Null
/// where the history has no GetNext of this loader.
nlohmann::json lanes_json(const profile::Profile& profile, const PageOptions& options);

}  // namespace headrace::report
