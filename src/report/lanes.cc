// A lane for every worker: its states over time, and the longest waits close up.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "lane_rows.h"

namespace headrace::report {

using nlohmann::json;

namespace {

constexpr std::size_t kColumns = 480;
constexpr std::size_t kColumnsCloseUp = 160;
constexpr std::size_t kMaxLanes = 32;
/// Below this there is nothing to see: the history counts in microseconds.
constexpr std::int64_t kShortest_ns = 10'000;
constexpr std::size_t kMaxWaits = 5;
/// Around a wait that is shown close up: so much of its length on each side.
constexpr std::int64_t kAround = 2;
/// Shown unless the reader asks for another range: the newest steps, of which the history is finest.
constexpr std::size_t kSteps = 20;

double seconds_of(const LoopLanes& lanes, std::int64_t ns) {
  return static_cast<double>(ns - lanes.whole.begin_ns) * 1e-9;
}

/// Rows of pieces {class, first column, column behind the last}.
json picture_of(const LoopLanes& lanes, Span shown, std::size_t columns) {
  json rows = json::array();
  for (const LaneRow& row : lane_rows(lanes, shown, columns, kMaxLanes)) {
    json pieces = json::array();
    for (const Piece& piece : row.pieces) pieces.push_back({piece.css_class, piece.begin, piece.end});
    rows.push_back({{"name", row.name}, {"pieces", pieces}});
  }
  return {{"from_s", seconds_of(lanes, shown.begin_ns)},
          {"to_s", seconds_of(lanes, shown.end_ns)},
          {"columns", columns},
          {"rows", rows}};
}

/// The range that the reader asked for, within the run; the last steps if that is nothing.
Span shown_of(const LoopLanes& lanes, const PageOptions& options) {
  const double most_s = seconds_of(lanes, lanes.whole.end_ns);
  const auto at = [&](double seconds) {
    const double within = seconds > 0 ? std::min(seconds, most_s) : 0.0;
    return lanes.whole.begin_ns + static_cast<std::int64_t>(within * 1e9);
  };
  const Span asked{at(options.from_s), at(options.to_s)};
  if (asked.length_ns() >= kShortest_ns) return asked;
  const std::vector<profile::GetNextCall>& calls = lanes.loop->calls;
  return {calls[calls.size() - std::min(calls.size(), kSteps)].begin_ns, lanes.whole.end_ns};
}

json wait_of(const LoopLanes& lanes, const profile::GetNextCall& call) {
  const Span wait{call.begin_ns, call.end_ns};
  json busy = json::array();
  for (const BusyOperator& op : busy_operators(lanes, wait)) busy.push_back({op.name, op.share});
  const std::int64_t around = wait.length_ns() / kAround;
  return {{"batch", call.batch},
          {"begin_s", seconds_of(lanes, wait.begin_ns)},
          {"end_s", seconds_of(lanes, wait.end_ns)},
          {"busy", busy},
          {"picture", picture_of(lanes, {wait.begin_ns - around, wait.end_ns + around}, kColumnsCloseUp)}};
}

}  // namespace

json lanes_json(const profile::Profile& profile, const PageOptions& options) {
  if (options.history == nullptr) return nullptr;
  const LoopLanes lanes = lanes_of(*options.history, profile.loader);
  if (lanes.loop == nullptr || lanes.whole.length_ns() < kShortest_ns) return nullptr;
  json waits = json::array();
  for (const profile::GetNextCall& call : longest_calls(*lanes.loop, kMaxWaits))
    waits.push_back(wait_of(lanes, call));
  return {{"end_s", seconds_of(lanes, lanes.whole.end_ns)},
          {"picture", picture_of(lanes, shown_of(lanes, options), kColumns)},
          {"left_out", lanes.workers.size() - std::min(lanes.workers.size(), kMaxLanes)},
          {"waits", waits}};
}

}  // namespace headrace::report
