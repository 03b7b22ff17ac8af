#include "headrace/timeline/merge.h"

#include <algorithm>
#include <filesystem>
#include <future>
#include <limits>
#include <set>
#include <system_error>
#include <utility>

#include "headrace/profile/errors.h"
#include "headrace/profile/history.h"
#include "headrace/timeline/event_writer.h"
#include "headrace/timeline/open_events.h"
#include "headrace/timeline/run_tracks.h"
#include "headrace/timeline/trace_copier.h"
#include "timeline/device_facts.h"

namespace headrace::timeline {
namespace {

using profile::History;

/// Processes of the second trace on are moved by so much: beyond any pid of Linux.
constexpr std::int64_t kPidStep = 100'000'000;
constexpr std::int64_t kFirstPid = 2'000'000'000;

std::uint64_t file_size(const std::string& path) {
  std::error_code unknown;
  const std::uint64_t bytes = std::filesystem::file_size(path, unknown);  // of a regular file
  return unknown ? 0 : bytes;
}

/// A device trace as it will stand in the merged file.
struct Placed {
  DeviceFacts facts;
  EventChanges changes;
  std::int64_t unix_of_ts = 0;  ///< what makes Unix time of the stamps in its own file
};

struct Run {
  History history;
  const Placed* trace = nullptr;
  ClockAlignment alignment;
};

class Merger {
 public:
  explicit Merger(const MergeRequest& request) : request_(request), out_(request.out) {
    for (const std::string& path : request.traces) all_bytes_ += file_size(path);
  }

  MergeResult merge() {
    read_runs();
    if (request_.traces.empty()) {
      write_alone();
    } else {
      write_with_traces();
    }
    out_.finish();
    result_.path = request_.out;
    result_.bytes = out_.bytes_out();
    return std::move(result_);
  }

 private:
  void read_runs() {
    if (request_.segments.empty() && request_.traces.empty())
      throw UsageError("a timeline needs the segment of a run, or a trace");
    if (request_.segments.empty()) return;
    for (const std::string& path : request_.segments)
      runs_.push_back({profile::read_history(path), nullptr, {}});
    std::stable_sort(runs_.begin(), runs_.end(),
                     [](const Run& a, const Run& b) { return a.history.rank < b.history.rank; });
    const bool any = std::any_of(runs_.begin(), runs_.end(), [](const Run& run) {
      return !run.history.workers.empty() ||
             std::any_of(run.history.loops.begin(), run.history.loops.end(),
                         [](const auto& loop) { return !loop.calls.empty(); });
    });
    if (!any) note("the run holds no history: nothing was recorded in it yet");
  }

  void note(std::string sentence) {
    if (std::find(result_.notes.begin(), result_.notes.end(), sentence) == result_.notes.end())
      result_.notes.push_back(std::move(sentence));
  }

  // --- without a trace ---

  void write_alone() {
    const History& first = runs_.front().history;
    base_ns_ = WallClock(first.anchors).unix_ns(first.opened_ns);
    out_.write("{\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":" + std::to_string(base_ns_) +
               ",\"traceEvents\":[\n");
    write_runs(false);
    out_.write("\n]}\n");
  }

  // --- with traces ---

  void write_with_traces() {
    traces_.reserve(request_.traces.size());
    // The first document is handed on while it is read: when the reader has something to say about it, this
    // was in vain and it is done again, event by event.
    std::future<DeviceFacts> reading =
        std::async(std::launch::async, read_device_facts, request_.traces.front());
    bool sound = false;
    bool placed = false;
    {
      const auto bytes = open_events(request_.traces.front());
      TraceCopier passage(*bytes, request_.traces.front(), out_, progress_from(0));
      sound = passage.copy_document([&](bool any) {
        place(reading.get());
        placed = true;
        if (!traces_.front().facts.whole) return;
        write_further(any);
      });
    }
    if (!placed) place(reading.get());
    if (sound && traces_.front().facts.whole) return;
    out_.restart();
    traces_.resize(1);
    for (Run& run : runs_) run.trace = nullptr;
    write_carefully();
  }

  /// The first trace has something wrong: its sound members and events, in a document of ours.
  void write_carefully() {
    out_.write("{");
    for (const std::string& member : traces_.front().facts.header) out_.write(member + ",\n");
    out_.write("\"traceEvents\":[\n");
    bool any = false;
    copy_events(traces_.front(), 0, any);
    write_further(any);
    out_.write("\n]}\n");
  }

  void write_further(bool any) {
    std::uint64_t done = file_size(request_.traces.front());
    for (std::size_t i = 1; i < request_.traces.size(); ++i) {
      place(read_device_facts(request_.traces[i]));
      copy_events(traces_.back(), done, any);
      done += file_size(request_.traces[i]);
    }
    pair_up();
    write_runs(any);
  }

  void copy_events(const Placed& placed, std::uint64_t done, bool& any) {
    const auto bytes = open_events(placed.facts.path);
    TraceCopier passage(*bytes, placed.facts.path, out_, progress_from(done));
    const std::uint64_t left_out = passage.copy_events(placed.changes, !placed.facts.whole, any);
    if (left_out > 0)
      note(placed.facts.path + ": " + std::to_string(left_out) +
           " events left out: no viewer could read them");
  }

  TraceCopier::Progress progress_from(std::uint64_t done) {
    if (!request_.progress || all_bytes_ == 0) return {};
    return [this, done](std::uint64_t bytes) {
      request_.progress(std::min(1.0, static_cast<double>(done + bytes) / static_cast<double>(all_bytes_)));
    };
  }

  void place(DeviceFacts facts) {
    const auto number = static_cast<std::int64_t>(traces_.size());
    for (const std::string& sentence : facts.notes) note(facts.path + ": " + sentence);
    Placed placed{std::move(facts), {}, 0};
    placed.unix_of_ts = placed.facts.unix_base_ns();
    if (!placed.facts.knows_unix_time()) {
      // A clock of its own: it begins when the run does, unless the calls that are in both say otherwise.
      placed.unix_of_ts = 0;
      if (!runs_.empty()) {
        const History& run = runs_.front().history;
        placed.unix_of_ts = WallClock(run.anchors).unix_ns(run.opened_ns) - placed.facts.first_ns;
      }
    }
    if (number == 0) {
      base_ns_ = placed.unix_of_ts;
    } else {
      placed.changes.add_to_pid = number * kPidStep;
      placed.changes.suffix = " #" + std::to_string(number);
      align_with_first(placed);
      placed.changes.add_to_ts_ns = placed.unix_of_ts - base_ns_;
    }
    traces_.push_back(std::move(placed));
  }

  /// Clocks of different machines: by the collectives in which the ranks met.
  void align_with_first(Placed& placed) {
    const Placed& first = traces_.front();
    if (placed.facts.rank && placed.facts.rank == first.facts.rank) return;  // two recordings of one rank
    const auto in_unix_time = [](const Placed& one) {
      std::vector<CollectiveEnd> ends = one.facts.collectives;
      for (CollectiveEnd& end : ends) end.end_ns += one.unix_of_ts;
      return ends;
    };
    const RankAlignment found = align_ranks(in_unix_time(first), in_unix_time(placed),
                                            first.facts.knows_unix_time() && placed.facts.knows_unix_time());
    placed.unix_of_ts += found.shift_ns;
    if (found.error_ns || !first.facts.collectives.empty()) note(placed.facts.path + ": " + found.sentence());
  }

  /// Pairs each trace with its run: by rank, else in their order.
  void pair_up() {
    std::set<const Placed*> taken;
    const bool only = runs_.size() == 1 && traces_.size() == 1;
    for (Run& run : runs_) {
      for (const Placed& placed : traces_) {
        if (run.trace != nullptr || taken.contains(&placed)) continue;
        if (!only && placed.facts.rank && *placed.facts.rank != run.history.rank) continue;
        run.trace = &placed;
        taken.insert(&placed);
      }
      if (run.trace == nullptr) {
        note("rank " + std::to_string(run.history.rank) + ": no device trace of it was given");
      } else {
        align(run);
      }
    }
    for (const Placed& placed : traces_) {
      if (!runs_.empty() && !taken.contains(&placed))
        note(placed.facts.path + ": a rank that the run has no segment of");
    }
  }

  void align(Run& run) {
    const Placed& placed = *run.trace;
    const WallClock wall(run.history.anchors);
    std::vector<TimeRange> theirs = placed.facts.next_calls;
    for (TimeRange& range : theirs) {
      range.begin_ns += placed.unix_of_ts;
      range.end_ns += placed.unix_of_ts;
    }
    for (const profile::LoopHistory& loop : run.history.loops) {
      std::vector<TimeRange> ours;
      for (const profile::GetNextCall& call : loop.calls) {
        if (!call.merged) ours.push_back({wall.unix_ns(call.begin_ns), wall.unix_ns(call.end_ns)});
      }
      const ClockAlignment found = align_clocks(ours, theirs, placed.facts.knows_unix_time());
      if (found.matched > run.alignment.matched) run.alignment = found;
    }
    const std::string who = runs_.size() > 1 ? "rank " + std::to_string(run.history.rank) + ": " : "";
    note(who + run.alignment.sentence());
    if (!run.alignment.error_ns || errors_unknown_) {
      errors_unknown_ = true;
      result_.clock_error_ns.reset();
    } else {
      result_.clock_error_ns = std::max(result_.clock_error_ns.value_or(0), *run.alignment.error_ns);
    }
  }

  // --- ours ---

  bool is_taken(std::int64_t pid) const {
    return std::any_of(traces_.begin(), traces_.end(), [&](const Placed& placed) {
      return std::any_of(placed.facts.processes.begin(), placed.facts.processes.end(),
                         [&](const auto& process) { return process.pid + placed.changes.add_to_pid == pid; });
    });
  }

  void write_runs(bool any) {
    EventWriter events(out_, base_ns_, !any);
    for (std::size_t i = 1; i < traces_.size(); ++i) {
      const Placed& placed = traces_[i];
      const std::string rank =
          placed.facts.rank ? "rank " + std::to_string(*placed.facts.rank) : "trace " + std::to_string(i);
      for (const DeviceFacts::Process& process : placed.facts.processes)
        events.rename_process(changed_pid(process.process, process.pid, placed.changes),
                              rank + " " + process.name);
    }
    std::int64_t pid = kFirstPid;
    std::uint64_t first_flow = 1;
    for (const Run& run : runs_) {
      while (is_taken(pid)) ++pid;
      FirstKernel kernel;
      if (run.trace != nullptr && !run.trace->facts.launches.empty()) {
        kernel = [&run](std::int64_t begin, std::int64_t end) {
          return first_kernel(run.trace->facts, run.trace->changes, run.trace->unix_of_ts, begin, end);
        };
      }
      const RunClock clock{WallClock(run.history.anchors), run.alignment.shift_ns};
      write_run(run.history, clock, pid++, events, kernel, first_flow);
      first_flow += std::uint64_t{1} << 32;
    }
    result_.slices = events.slices();
    result_.counters = events.counters();
    result_.flows = events.flows();
  }

  const MergeRequest& request_;
  GzipWriter out_;
  MergeResult result_;
  std::vector<Run> runs_;
  std::vector<Placed> traces_;
  std::int64_t base_ns_ = 0;
  std::uint64_t all_bytes_ = 0;
  bool errors_unknown_ = false;
};

}  // namespace

MergeResult merge(const MergeRequest& request) { return Merger(request).merge(); }

}  // namespace headrace::timeline
