#include "headrace/timeline/run_tracks.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/profile/layout.h"

namespace headrace::timeline {
namespace {

using metrics::WorkerState;
using profile::GetNextCall;
using profile::StateSlice;

/// An arrow that begins at the very end of a slice would be lost to viewers that round times.
constexpr std::int64_t kInside = 1000;
/// Process sort index: above whatever a device trace shows.
constexpr std::int64_t kAboveAll = -1'000'000;

/// Start of a row's slices: never before the end of the last one, whatever the wall clock did.
class Cursor {
 public:
  /// [begin, end) cut to what is free; empty if nothing is.
  TimeRange take(std::int64_t begin, std::int64_t end) noexcept {
    const TimeRange taken{std::max(begin, last_), std::max({begin, end, last_})};
    last_ = taken.end_ns;
    return taken;
  }

 private:
  std::int64_t last_ = std::numeric_limits<std::int64_t>::min();
};

std::string share_text(double share) {
  char text[16];
  const auto end = std::to_chars(text, text + sizeof(text), share, std::chars_format::fixed, 2).ptr;
  return {text, end};
}

class RunWriter {
 public:
  RunWriter(const profile::History& history, const RunClock& clock, std::int64_t pid, EventWriter& events,
            const FirstKernel& first_kernel, std::uint64_t first_flow)
      : history_(history),
        clock_(clock),
        pid_(pid),
        events_(events),
        first_kernel_(first_kernel),
        next_flow_(first_flow) {}

  void write() {
    const std::string rank = std::to_string(history_.rank);
    events_.process_name(pid_, "Headrace, rank " + rank, "input pipeline", kAboveAll + history_.rank);
    const auto loops = std::count_if(history_.loops.begin(), history_.loops.end(),
                                     [](const auto& loop) { return !loop.calls.empty(); });
    for (const profile::LoopHistory& loop : history_.loops) {
      if (!loop.calls.empty()) write_loop(loop, loops > 1);
    }
    for (const profile::ThreadAnnotations& thread : history_.annotations) write_annotations(thread);
    write_operators();
    write_queues();
  }

 private:
  Row new_row(const std::string& name) {
    const Row row{pid_, ++rows_};
    events_.thread_name(row, name, rows_);
    return row;
  }

  // --- the loop ---

  struct Ready {
    Row row;
    std::int64_t at_ns;
  };

  void write_loop(const profile::LoopHistory& loop, bool of_several) {
    const std::string suffix = of_several ? " (" + loop.loader + ")" : "";
    const Row calls = new_row("GetNext" + suffix);
    const Row steps = new_row("steps" + suffix);
    const std::map<std::uint64_t, Ready> ready = write_batches(loop, suffix);
    auto get_next = events_.slice_name(calls, "GetNext");
    Cursor cursor;
    for (const GetNextCall& call : loop.calls) {
      const TimeRange range = cursor.take(clock_.at(call.begin_ns), clock_.at(call.end_ns));
      std::string args = "\"batch\":" + std::to_string(call.batch);
      args += call.merged  ? ",\"several calls\":true,\"waiting\":" + share_text(call.share)
              : call.ready ? ",\"ready\":true"
                           : ",\"ready\":false";
      events_.slice(get_next, range.begin_ns, range.end_ns, args);
    }
    write_steps(loop, calls, steps, ready);
  }

  /// Batches that are made at the same time lie on several rows.
  std::map<std::uint64_t, Ready> write_batches(const profile::LoopHistory& loop, const std::string& suffix) {
    struct BatchRow {
      Row row;
      EventWriter::Prepared name;
      std::int64_t busy_until;
    };
    constexpr std::size_t kMaxLanes = 64;
    std::map<int, std::vector<BatchRow>> lanes_of_worker;
    std::map<std::uint64_t, Ready> ready;
    for (const profile::BatchMaking& batch : loop.batches) {
      const std::int64_t begin = clock_.at(batch.begin_ns);
      const std::int64_t end = std::max(begin + 1, clock_.at(batch.end_ns));
      std::vector<BatchRow>& lanes = lanes_of_worker[batch.worker];
      auto lane = std::find_if(lanes.begin(), lanes.end(),
                               [&](const BatchRow& one) { return one.busy_until <= begin; });
      if (lane == lanes.end()) {
        if (lanes.size() == kMaxLanes) continue;
        std::string name = "batches" + suffix;
        if (batch.worker >= 0) name += " worker " + std::to_string(batch.worker);
        const Row row = new_row(name);
        lane = lanes.insert(lanes.end(), {row, events_.slice_name(row, "batch"), 0});
      }
      lane->busy_until = end;
      events_.slice(lane->name, begin, end, "\"batch\":" + std::to_string(batch.batch));
      ready.insert_or_assign(batch.batch, Ready{lane->row, end - std::min(kInside, (end - begin) / 2)});
    }
    return ready;
  }

  /// Until the next call or the loop's end; 0 if the last call of a running loop is followed by neither.
  std::int64_t step_end(const profile::LoopHistory& loop, std::size_t call) const {
    const std::int64_t delivered = loop.calls[call].end_ns;
    std::int64_t end = call + 1 < loop.calls.size() ? loop.calls[call + 1].begin_ns : history_.until_ns;
    const auto over = std::lower_bound(loop.ends_ns.begin(), loop.ends_ns.end(), delivered);
    if (over != loop.ends_ns.end()) end = std::min(end, *over);
    return end;
  }

  void write_steps(const profile::LoopHistory& loop, const Row& calls, const Row& steps,
                   const std::map<std::uint64_t, Ready>& ready) {
    auto name = events_.slice_name(steps, "step");
    Cursor cursor;
    for (std::size_t i = 0; i < loop.calls.size(); ++i) {
      const GetNextCall& call = loop.calls[i];
      const std::int64_t end_ns = step_end(loop, i);
      if (call.merged || end_ns <= call.end_ns) continue;
      const TimeRange step = cursor.take(clock_.at(call.end_ns), clock_.at(end_ns));
      if (step.end_ns <= step.begin_ns) continue;
      events_.slice(name, step.begin_ns, step.end_ns, "\"batch\":" + std::to_string(call.batch));
      const auto batch = ready.find(call.batch);
      const auto kernel = first_kernel_ ? first_kernel_(step.begin_ns, step.end_ns) : std::nullopt;
      if (batch == ready.end() && !kernel) continue;
      const std::uint64_t id = next_flow_++;
      if (batch != ready.end()) {
        events_.flow('s', batch->second.row, id, std::min(batch->second.at_ns, step.begin_ns));
      } else {
        events_.flow('s', calls, id, std::max(clock_.at(call.begin_ns), step.begin_ns - kInside));
      }
      events_.flow(kernel ? 't' : 'f', steps, id, step.begin_ns);
      if (kernel) events_.flow('f', kernel->pid_json, kernel->tid_json, id, kernel->begin_ns);
    }
  }

  // --- annotations ---

  void write_annotations(const profile::ThreadAnnotations& thread) {
    // Inner ranges end before the outer ones, so from the last end on each meets what encloses it. Times are
    // rounded: an inner range that seems to begin a little early is cut.
    std::vector<profile::AnnotatedRange> ranges = thread.ranges;
    std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) {
      return std::pair(b.end_ns, a.begin_ns) < std::pair(a.end_ns, b.begin_ns);
    });
    std::vector<TimeRange> around;
    for (profile::AnnotatedRange& range : ranges) {
      while (!around.empty() && around.back().begin_ns >= range.end_ns) around.pop_back();
      if (!around.empty()) range.begin_ns = std::max(range.begin_ns, around.back().begin_ns);
      around.push_back({range.begin_ns, range.end_ns});
    }
    std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) {
      return std::pair(a.begin_ns, b.end_ns) < std::pair(b.begin_ns, a.end_ns);
    });
    const Row row = new_row("annotations thread " + std::to_string(thread.tid));
    std::map<std::string_view, EventWriter::Prepared> names;
    for (const profile::AnnotatedRange& range : ranges) {
      const auto known = names.try_emplace(range.name, events_.slice_name(row, range.name)).first;
      events_.slice(known->second, clock_.at(range.begin_ns), clock_.at(range.end_ns),
                    "\"number\":" + std::to_string(range.number));
    }
  }

  // --- operators ---

  /// The wrapped object's own time is its GetNext calls, which have a row.
  bool is_shown(int op) const {
    return op >= 0 &&
           (history_.operators[static_cast<std::size_t>(op)].flags & profile::kIsWrappedObject) == 0;
  }

  /// Operators that a worker ran, in the order in which an item meets them.
  std::vector<int> operators_of(const profile::WorkerStates& worker) const {
    std::vector<int> met;
    for (const StateSlice& slice : worker.slices) {
      if (is_shown(slice.op) && std::find(met.begin(), met.end(), slice.op) == met.end())
        met.push_back(slice.op);
    }
    std::stable_sort(met.begin(), met.end(), [&](int a, int b) {
      return history_.operators[static_cast<std::size_t>(a)].stage <
             history_.operators[static_cast<std::size_t>(b)].stage;
    });
    return met;
  }

  void write_operators() {
    struct Member {
      const profile::WorkerStates* worker;
      bool is_first;
      bool is_last;
    };
    std::map<int, std::vector<Member>> workers_of;
    for (const profile::WorkerStates& worker : history_.workers) {
      const std::vector<int> met = operators_of(worker);
      for (const int op : met) workers_of[op].push_back({&worker, op == met.front(), op == met.back()});
    }
    std::vector<int> order;
    for (const auto& [op, workers] : workers_of) order.push_back(op);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      const auto& first = history_.operators[static_cast<std::size_t>(a)];
      const auto& second = history_.operators[static_cast<std::size_t>(b)];
      return std::pair(first.loader, first.stage) < std::pair(second.loader, second.stage);
    });
    for (const int op : order) {
      int number = 0;
      for (const Member& member : workers_of[op]) {
        const int shown = member.worker->number >= 0 ? member.worker->number : number;
        ++number;
        std::string name = history_.operators[static_cast<std::size_t>(op)].name;
        if (workers_of[op].size() > 1 || member.worker->number >= 0)
          name += " worker " + std::to_string(shown);
        write_worker(*member.worker, op, member.is_first, member.is_last, name);
      }
    }
  }

  void write_worker(const profile::WorkerStates& worker, int op, bool is_first, bool is_last,
                    const std::string& row_name) {
    const Row row = new_row(row_name);
    auto busy = events_.slice_name(row, history_.operators[static_cast<std::size_t>(op)].name);
    auto blocked_in = events_.slice_name(row, "blocked-in");
    auto blocked_out = events_.slice_name(row, "blocked-out");
    Cursor cursor;
    for (const StateSlice& slice : worker.slices) {
      EventWriter::Prepared* name = nullptr;
      if (slice.op == op) {
        name = &busy;
      } else if (slice.op < 0 && slice.state == WorkerState::blocked_in && is_first) {
        name = &blocked_in;
      } else if (slice.op < 0 && slice.state == WorkerState::blocked_out && is_last) {
        name = &blocked_out;
      }
      if (name == nullptr) continue;
      const TimeRange range = cursor.take(clock_.at(slice.begin_ns), clock_.at(slice.end_ns));
      if (slice.mixed()) {
        events_.slice(*name, range.begin_ns, range.end_ns, "\"busy\":" + share_text(slice.busy));
      } else {
        events_.slice(*name, range.begin_ns, range.end_ns);
      }
    }
  }

  // --- queues ---

  void write_queues() {
    std::map<std::string_view, int> named;
    for (const profile::QueueLevels& queue : history_.queues) ++named[queue.name];
    for (const profile::QueueLevels& queue : history_.queues) {
      std::string name = queue.name;
      if (named[queue.name] > 1 && queue.loader >= 0)
        name += " (" + history_.loops[static_cast<std::size_t>(queue.loader)].loader + ")";
      auto counter = events_.counter_name(pid_, name);
      std::int64_t last = std::numeric_limits<std::int64_t>::min();
      for (const profile::LevelSample& sample : queue.samples) {
        const std::int64_t at = std::max(last, clock_.at(sample.at_ns));
        last = at;
        events_.counter(counter, at, sample.level);
      }
    }
  }

  const profile::History& history_;
  const RunClock& clock_;
  const std::int64_t pid_;
  EventWriter& events_;
  const FirstKernel& first_kernel_;
  std::uint64_t next_flow_;
  std::int64_t rows_ = 0;
};

}  // namespace

void write_run(const profile::History& history, const RunClock& clock, std::int64_t pid, EventWriter& events,
               const FirstKernel& first_kernel, std::uint64_t first_flow) {
  RunWriter(history, clock, pid, events, first_kernel, first_flow).write();
}

}  // namespace headrace::timeline
