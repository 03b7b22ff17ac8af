#include "lane_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

namespace headrace::report {
namespace {

using metrics::WorkerState;
using profile::GetNextCall;
using profile::History;
using profile::StateSlice;
using profile::WorkerStates;

double fraction(double share) { return std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0; }

bool is_shown(const History& history, int op, int loader) {
  if (op < 0 || static_cast<std::size_t>(op) >= history.operators.size()) return false;
  const profile::HistoryOperator& of = history.operators[static_cast<std::size_t>(op)];
  // The wrapped object's own time is its GetNext calls, which have a row.
  return (of.flags & profile::kIsWrappedObject) == 0 && (of.loader == loader || of.loader < 0);
}

/// The operator in which a worker was busy longest; -1: it never was in one of this loader.
int main_operator(const History& history, const WorkerStates& worker, int loader) {
  std::map<int, double> busy_ns;
  for (const StateSlice& slice : worker.slices) {
    if (is_shown(history, slice.op, loader))
      busy_ns[slice.op] += slice.busy * static_cast<double>(slice.end_ns - slice.begin_ns);
  }
  const auto most = std::max_element(busy_ns.begin(), busy_ns.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == busy_ns.end() ? -1 : most->first;
}

/// Sums up how long each look was in each column, and gives each column to the longest.
class Columns {
 public:
  static constexpr std::size_t kLooks = 4;

  Columns(Span shown, std::size_t count)
      : shown_(shown),
        sums_(count),
        width_ns_(static_cast<double>(shown.length_ns()) / static_cast<double>(count)) {}

  void add(std::int64_t begin_ns, std::int64_t end_ns, std::size_t look) {
    const double begin = column_of(begin_ns);
    const double end = column_of(end_ns);
    for (auto at = static_cast<std::size_t>(begin); at < sums_.size() && static_cast<double>(at) < end;
         ++at) {
      const double column = static_cast<double>(at);
      sums_[at][look] += std::min(end, column + 1) - std::max(begin, column);
    }
  }

  /// Columns in which nothing was are left out.
  std::vector<Piece> pieces(const std::array<const char*, kLooks>& classes) const {
    std::vector<Piece> pieces;
    for (std::size_t at = 0; at < sums_.size(); ++at) {
      const auto most = std::max_element(sums_[at].begin(), sums_[at].end());
      if (!(*most > 0)) continue;
      const char* look = classes[static_cast<std::size_t>(most - sums_[at].begin())];
      if (!pieces.empty() && pieces.back().end == at && pieces.back().css_class == look) {
        ++pieces.back().end;
      } else {
        pieces.push_back({at, at + 1, look});
      }
    }
    return pieces;
  }

 private:
  /// Within the picture.
  double column_of(std::int64_t ns) const {
    const double at = static_cast<double>(ns - shown_.begin_ns) / width_ns_;
    return std::clamp(at, 0.0, static_cast<double>(sums_.size()));
  }

  Span shown_;
  std::vector<std::array<double, kLooks>> sums_;
  double width_ns_;
};

std::vector<Piece> calls_of(const LoopLanes& lanes, Span shown, std::size_t columns) {
  enum { kWaits, kReady, kComputes };
  Columns sums(shown, columns);
  const std::vector<GetNextCall>& calls = lanes.loop->calls;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const GetNextCall& call = calls[i];
    const std::int64_t waited_until =
        call.begin_ns + static_cast<std::int64_t>(static_cast<double>(call.end_ns - call.begin_ns) *
                                                  (call.merged ? fraction(call.share) : 1));
    sums.add(call.begin_ns, waited_until, call.ready ? kReady : kWaits);
    sums.add(waited_until, call.end_ns, kComputes);
    const std::vector<std::int64_t>& ends = lanes.loop->ends_ns;
    const auto over = std::lower_bound(ends.begin(), ends.end(), call.end_ns);
    std::int64_t until = i + 1 < calls.size() ? calls[i + 1].begin_ns : lanes.whole.end_ns;
    if (over != ends.end()) until = std::min(until, *over);
    sums.add(call.end_ns, until, kComputes);
  }
  return sums.pieces({"starved", "floor", "compute", ""});
}

std::vector<Piece> states_of(const LoopLanes& lanes, const WorkerStates& worker, Span shown,
                             std::size_t columns) {
  enum { kBusy, kWaits, kBlocked, kIdle };
  Columns sums(shown, columns);
  for (const StateSlice& slice : worker.slices) {
    const bool computes = slice.op < 0 && slice.state == WorkerState::computing;
    if (computes || (slice.op >= 0 && !is_shown(*lanes.history, slice.op, lanes.loader))) continue;
    sums.add(slice.begin_ns, slice.end_ns,
             slice.op >= 0                             ? kBusy
             : slice.state == WorkerState::blocked_in  ? kWaits
             : slice.state == WorkerState::blocked_out ? kBlocked
                                                       : kIdle);
  }
  return sums.pieces({"busy", "waits", "blocked", "idle"});
}

std::vector<Piece> levels_of(const LoopLanes& lanes, const profile::QueueLevels& queue, Span shown,
                             std::size_t columns) {
  // Four looks are enough here: empty, below half, above, full.
  Columns sums(shown, columns);
  for (std::size_t i = 0; i < queue.samples.size(); ++i) {
    const std::int64_t until = i + 1 < queue.samples.size() ? queue.samples[i + 1].at_ns : lanes.whole.end_ns;
    const double level = fraction(queue.samples[i].level / static_cast<double>(queue.capacity));
    sums.add(queue.samples[i].at_ns, until, level <= 0 ? 0U : level < 0.5 ? 1U : level < 1 ? 2U : 3U);
  }
  return sums.pieces({"l0", "l1", "l3", "l4"});
}

}  // namespace

LoopLanes lanes_of(const History& history, const std::string& name) {
  LoopLanes lanes;
  lanes.history = &history;
  for (std::size_t i = 0; i < history.loops.size(); ++i) {
    if (history.loops[i].loader != name || history.loops[i].calls.empty()) continue;
    lanes.loop = &history.loops[i];
    lanes.loader = static_cast<int>(i);
  }
  if (lanes.loop == nullptr) return lanes;
  lanes.whole = {lanes.loop->calls.front().begin_ns, lanes.loop->calls.back().end_ns};
  if (!lanes.loop->ends_ns.empty())
    lanes.whole.end_ns = std::max(lanes.whole.end_ns, lanes.loop->ends_ns.back());
  if (history.running) lanes.whole.end_ns = std::max(lanes.whole.end_ns, history.until_ns);

  struct Found {
    const WorkerStates* worker;
    int op;
  };
  std::vector<Found> found;
  std::map<int, int> of_operator;
  for (const WorkerStates& worker : history.workers) {
    if (worker.loader >= 0 && worker.loader != lanes.loader) continue;
    const int op = main_operator(history, worker, lanes.loader);
    if (op < 0) continue;
    found.push_back({&worker, op});
    if (worker.number < 0) ++of_operator[op];
  }
  std::stable_sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
    const auto key = [&](const Found& one) {
      return std::pair(history.operators[static_cast<std::size_t>(one.op)].stage, one.worker->number);
    };
    return key(a) < key(b);
  });
  std::map<int, int> numbered;
  for (const Found& each : found) {
    lanes.workers.push_back(each.worker);
    std::string label = history.operators[static_cast<std::size_t>(each.op)].name;
    if (each.worker->number >= 0) {
      label = "worker " + std::to_string(each.worker->number);
    } else if (of_operator[each.op] > 1) {
      label += " " + std::to_string(++numbered[each.op]);
    }
    lanes.names.push_back(std::move(label));
  }
  return lanes;
}

std::vector<LaneRow> lane_rows(const LoopLanes& lanes, Span shown, std::size_t columns, std::size_t most) {
  std::vector<LaneRow> rows{{"training loop", calls_of(lanes, shown, columns)}};
  for (std::size_t i = 0; i < std::min(most, lanes.workers.size()); ++i) {
    rows.push_back({lanes.names[i], states_of(lanes, *lanes.workers[i], shown, columns)});
  }
  std::size_t queues = 0;
  for (const profile::QueueLevels& queue : lanes.history->queues) {
    if (queue.capacity <= 0 || (queue.loader >= 0 && queue.loader != lanes.loader)) continue;
    if (++queues > most) break;
    const bool after_operator =
        std::any_of(lanes.history->operators.begin(), lanes.history->operators.end(),
                    [&](const profile::HistoryOperator& op) { return op.name == queue.name; });
    rows.push_back(
        {after_operator ? queue.name + " ->" : queue.name, levels_of(lanes, queue, shown, columns)});
  }
  return rows;
}

std::vector<GetNextCall> longest_calls(const profile::LoopHistory& loop, std::size_t most) {
  std::vector<GetNextCall> calls;
  for (std::size_t i = 1; i < loop.calls.size(); ++i) {
    const GetNextCall& call = loop.calls[i];
    const auto ended = std::lower_bound(loop.ends_ns.begin(), loop.ends_ns.end(), loop.calls[i - 1].end_ns);
    const bool first = ended != loop.ends_ns.end() && *ended <= call.begin_ns;
    if (!first && !call.merged && !call.ready && call.end_ns > call.begin_ns) calls.push_back(call);
  }
  const auto count = std::min(most, calls.size());
  std::partial_sort(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(count), calls.end(),
                    [](const GetNextCall& a, const GetNextCall& b) {
                      return a.end_ns - a.begin_ns > b.end_ns - b.begin_ns;
                    });
  calls.resize(count);
  return calls;
}

std::vector<BusyOperator> busy_operators(const LoopLanes& lanes, Span during) {
  std::map<int, std::vector<Span>> spans;
  for (const WorkerStates* worker : lanes.workers) {
    for (const StateSlice& slice : worker->slices) {
      if (slice.end_ns <= during.begin_ns || slice.begin_ns >= during.end_ns) continue;
      if (!is_shown(*lanes.history, slice.op, lanes.loader)) continue;
      spans[slice.op].push_back(
          {std::max(slice.begin_ns, during.begin_ns), std::min(slice.end_ns, during.end_ns)});
    }
  }
  std::vector<BusyOperator> found;
  for (auto& [op, of_op] : spans) {
    std::sort(of_op.begin(), of_op.end(),
              [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
    std::int64_t covered = 0;
    std::int64_t until = during.begin_ns;
    for (const Span& span : of_op) {
      covered += std::max<std::int64_t>(0, span.end_ns - std::max(span.begin_ns, until));
      until = std::max(until, span.end_ns);
    }
    found.push_back({lanes.history->operators[static_cast<std::size_t>(op)].name,
                     static_cast<double>(covered) / static_cast<double>(during.length_ns())});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const BusyOperator& a, const BusyOperator& b) { return a.share > b.share; });
  return found;
}

}  // namespace headrace::report
