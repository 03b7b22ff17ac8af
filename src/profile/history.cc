#include "headrace/profile/history.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "headrace/metrics/worker_cell.h"
#include "headrace/profile/process_identity.h"

namespace headrace::profile {
namespace {

using metrics::HistoryTrack;
using metrics::HistoryWord;
using metrics::LevelMoment;
using metrics::TrackKind;
using metrics::TrackLife;
using metrics::WaitMoment;
using metrics::WorkerMoment;
using Packing = metrics::HistoryPacking;

/// Times in a damaged file may be anything: they are kept where sums of them fit.
constexpr std::int64_t kLastNs = std::int64_t{1} << 61;

std::int64_t sane_ns(std::int64_t ns) { return std::clamp<std::int64_t>(ns, 0, kLastNs); }

std::int64_t ns_of(const HistoryTrack& track, std::uint64_t tick) {
  return sane_ns(sane_ns(track.base_ns.load()) + static_cast<std::int64_t>(tick << Packing::kTickShift));
}

class HistoryReader {
 public:
  explicit HistoryReader(const SegmentImage& image) : image_(image) {}

  History read() {
    read_header();
    read_operators();
    history_.loops.resize(kMaxLoaders);
    for (const HistoryTrack& track : image_.tracks()) read_track(track);
    name_loops();
    return std::move(history_);
  }

 private:
  void read_header() {
    const SegmentHeader& header = image_.header();
    history_.rank = header.rank;
    history_.pid = header.owner_pid;
    history_.opened_ns = sane_ns(header.opened_ns);
    here_ = header.boot == boot_identity();
    history_.running =
        here_ && header.closed.load() == 0 && process_alive(header.owner_pid, header.owner_start);
    const std::uint64_t known = header.anchors.count.load();
    for (std::uint32_t i = 0; i < metrics::AnchorRing::kLength && i < known; ++i) {
      const metrics::Anchor& anchor = header.anchors.anchors[i];
      history_.anchors.push_back({sane_ns(anchor.monotonic_ns.load()), sane_ns(anchor.realtime_ns.load())});
    }
    if (history_.anchors.empty())
      history_.anchors.push_back({history_.opened_ns, sane_ns(header.opened_realtime_ns)});
    std::sort(history_.anchors.begin(), history_.anchors.end(),
              [](const TimeAnchor& a, const TimeAnchor& b) { return a.monotonic_ns < b.monotonic_ns; });
    history_.until_ns = std::max(history_.opened_ns, history_.anchors.back().monotonic_ns);
    if (history_.running) history_.until_ns = std::max(history_.until_ns, metrics::Clock::now_ns());
  }

  void read_operators() {
    for (const OperatorRecord& record : image_.operators()) {
      HistoryOperator& made = history_.operators.emplace_back();
      if (record.life.load(std::memory_order_relaxed) == 0) continue;
      made.name = record.name.view();
      made.flags = record.flags.load();
      made.loader = static_cast<int>(std::min(record.loader.load(), kMaxLoaders + 1)) - 1;
      if (made.loader >= static_cast<int>(kMaxLoaders)) made.loader = -1;
      made.stage = record.stage.load();
    }
  }

  void read_track(const HistoryTrack& track) {
    const std::uint32_t life = track.life.load(std::memory_order_relaxed);
    if (life == static_cast<std::uint32_t>(TrackLife::free)) return;
    const std::uint64_t first = track.first_word.load();
    const std::uint32_t count = std::min(track.count.load(std::memory_order_relaxed), track.capacity.load());
    if (first + count > image_.words().size()) return;
    const auto words = image_.words().subspan(first, count);
    switch (static_cast<TrackKind>(track.kind.load())) {
      case TrackKind::worker:
        return read_worker(track, words);
      case TrackKind::queue:
        return read_queue(track, words);
      case TrackKind::get_next:
        return read_calls(track, words);
      case TrackKind::batches:
        return read_batches(track, words);
      case TrackKind::annotation:
        return read_annotations(track, words);
    }
  }

  /// Until when the open state of a track lasts; 0 if its writer has left.
  std::int64_t open_until(const HistoryTrack& track) const {
    if (track.life.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(TrackLife::live)) return 0;
    const int pid = track.pid.load();
    if (pid == 0 || pid == history_.pid) return history_.until_ns;
    if (here_ && process_alive(pid, track.process_start.load())) return history_.until_ns;
    return std::min(history_.until_ns, history_.anchors.back().monotonic_ns);
  }

  /// Entries as (begin, end, value); what stands twice (a writer was killed while it merged) is met once.
  template <class Each>
  static void each_state(const HistoryTrack& track, std::span<const HistoryWord> words, Each&& each) {
    const std::int64_t settled = sane_ns(track.run_ns.load());
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::uint64_t word = words[i].load();
      const std::uint64_t tick = Packing::tick_of(word);
      if (tick < last) continue;
      last = tick;
      std::int64_t end = settled;
      for (std::size_t next = i + 1; next < words.size(); ++next) {
        if (Packing::tick_of(words[next].load()) < tick) continue;
        end = ns_of(track, Packing::tick_of(words[next].load()));
        break;
      }
      const std::int64_t begin = ns_of(track, tick);
      if (begin < end) each(begin, end, Packing::value_of(word));
    }
  }

  void add_slice(WorkerStates& worker, std::int64_t begin, std::int64_t end, WorkerMoment moment) const {
    StateSlice slice{begin, end};
    slice.busy = static_cast<double>(moment.busy) / WorkerMoment::kWhole;
    if (WorkerMoment::is_operator(moment.code)) {
      slice.op = static_cast<int>(moment.code - WorkerMoment::kFirstOperator);
      if (slice.op >= static_cast<int>(history_.operators.size()) ||
          history_.operators[static_cast<std::size_t>(slice.op)].name.empty()) {
        return;
      }
    } else if (moment.code < metrics::kWorkerStates) {
      slice.state = static_cast<metrics::WorkerState>(moment.code);
    } else {
      return;
    }
    if (!worker.slices.empty()) begin = slice.begin_ns = std::max(begin, worker.slices.back().end_ns);
    if (begin < end) worker.slices.push_back(slice);
  }

  void read_worker(const HistoryTrack& track, std::span<const HistoryWord> words) {
    WorkerStates worker;
    worker.loader = static_cast<int>(std::min(track.subject.load(), kMaxLoaders + 1)) - 1;
    if (worker.loader >= static_cast<int>(kMaxLoaders)) worker.loader = -1;
    worker.number = track.number.load();
    worker.pid = track.pid.load();
    worker.tid = track.tid.load();
    each_state(track, words, [&](std::int64_t begin, std::int64_t end, std::uint32_t value) {
      add_slice(worker, begin, end, WorkerMoment::unpack(value));
    });
    const std::int64_t until = open_until(track);
    const std::int64_t run = sane_ns(track.run_ns.load());
    const std::int64_t since = std::clamp(sane_ns(track.since_ns.load()), run, std::max(run, until));
    if (until > run) {
      if (since > run) {
        const double busy =
            std::clamp(static_cast<double>(track.weight.load()) / static_cast<double>(since - run), 0.0, 1.0);
        add_slice(worker, run, since,
                  {track.longest.load(), static_cast<std::uint32_t>(busy * WorkerMoment::kWhole + 0.5)});
      }
      const std::uint32_t code = track.value.load();
      add_slice(worker, since, until, {code, WorkerMoment::is_operator(code) ? WorkerMoment::kWhole : 0});
    }
    if (!worker.slices.empty()) history_.workers.push_back(std::move(worker));
  }

  void read_queue(const HistoryTrack& track, std::span<const HistoryWord> words) {
    const std::uint32_t queue = track.subject.load() - 1;
    if (queue >= kMaxQueues) return;
    const QueueRecord& record = image_.queues()[queue];
    QueueLevels levels;
    levels.name = record.name.view();
    levels.capacity = std::max<std::int64_t>(0, record.cell.capacity.load());
    levels.loader = static_cast<int>(std::min(record.loader.load(), kMaxLoaders + 1)) - 1;
    if (levels.loader >= static_cast<int>(kMaxLoaders)) levels.loader = -1;
    each_state(track, words, [&](std::int64_t begin, std::int64_t, std::uint32_t value) {
      levels.samples.push_back(
          {begin, static_cast<double>(LevelMoment::unpack(value)) / (1U << LevelMoment::kFractionBits)});
    });
    const std::int64_t until = open_until(track);
    const std::int64_t since = sane_ns(track.run_ns.load());
    if (until > since && (levels.samples.empty() || since > levels.samples.back().at_ns)) {
      const std::int64_t level = std::max<std::int64_t>(0, record.cell.occupancy.level.load());
      levels.samples.push_back({since, static_cast<double>(level)});
    }
    if (!levels.samples.empty() && !levels.name.empty()) history_.queues.push_back(std::move(levels));
  }

  struct Range {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    std::uint64_t number;
    std::uint32_t value;

    auto key() const { return std::tie(begin_ns, end_ns, number, value); }
  };

  static std::vector<Range> ranges_of(const HistoryTrack& track, std::span<const HistoryWord> words) {
    std::vector<Range> ranges;
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
      const std::uint64_t when = words[i].load();
      const std::uint64_t what = words[i + 1].load();
      const std::uint64_t ended = Packing::tick_of(when);
      const std::uint64_t lasted = std::min(ended, Packing::ticks_of(what));
      ranges.push_back({ns_of(track, ended - lasted), ns_of(track, ended), Packing::number_of(what),
                        Packing::value_of(when)});
    }
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.key() < b.key(); });
    ranges.erase(std::unique(ranges.begin(), ranges.end(),
                             [](const Range& a, const Range& b) { return a.key() == b.key(); }),
                 ranges.end());
    return ranges;
  }

  LoopHistory* loop_of(const HistoryTrack& track) {
    const std::uint32_t loader = track.subject.load() - 1;
    return loader < kMaxLoaders ? &history_.loops[loader] : nullptr;
  }

  void read_calls(const HistoryTrack& track, std::span<const HistoryWord> words) {
    LoopHistory* loop = loop_of(track);
    if (loop == nullptr) return;
    std::int64_t last = 0;
    for (const Range& range : ranges_of(track, words)) {
      const WaitMoment moment = WaitMoment::unpack(range.value);
      if (moment.ended) {
        loop->ends_ns.push_back(range.end_ns);
        continue;
      }
      // One thread asks, so calls do not overlap; the last tick of one may be the first of the next.
      const std::int64_t begin = std::max(range.begin_ns, last);
      if (begin > range.end_ns) continue;
      last = range.end_ns;
      loop->calls.push_back({begin, range.end_ns, range.number, moment.ready, moment.merged,
                             static_cast<double>(moment.share) / WaitMoment::kWhole});
    }
    add_pending_calls(track, *loop);
  }

  /// Calls that follow each other too fast to have become a range yet.
  static void add_pending_calls(const HistoryTrack& track, LoopHistory& loop) {
    const std::uint32_t calls = track.value.load();
    const std::int64_t begin = sane_ns(track.run_ns.load());
    const std::int64_t end = sane_ns(track.since_ns.load());
    if (calls == 0 || end <= begin || (!loop.calls.empty() && begin < loop.calls.back().end_ns)) return;
    const double share = static_cast<double>(track.weight.load()) / static_cast<double>(end - begin);
    loop.calls.push_back({begin, end, track.run_number.load(), track.longest.load() != 0, calls > 1,
                          std::clamp(share, 0.0, 1.0)});
  }

  void read_batches(const HistoryTrack& track, std::span<const HistoryWord> words) {
    LoopHistory* loop = loop_of(track);
    if (loop == nullptr) return;
    loop->batches_left_out = track.left_out.load();
    for (const Range& range : ranges_of(track, words)) {
      loop->batches.push_back(
          {range.begin_ns, range.end_ns, range.number, static_cast<int>(range.value & 0xFFFU) - 1});
    }
  }

  void read_annotations(const HistoryTrack& track, std::span<const HistoryWord> words) {
    ThreadAnnotations thread;
    thread.pid = track.pid.load();
    thread.tid = track.tid.load();
    thread.left_out = track.left_out.load();
    for (const Range& range : ranges_of(track, words)) {
      if (range.value >= kMaxAnnotations) continue;
      const std::string_view name = image_.annotations()[range.value].name.view();
      if (name.empty()) continue;
      thread.ranges.push_back({range.begin_ns, range.end_ns, range.number, std::string(name)});
    }
    if (!thread.ranges.empty()) history_.annotations.push_back(std::move(thread));
  }

  void name_loops() {
    for (std::uint32_t i = 0; i < kMaxLoaders; ++i) {
      LoopHistory& loop = history_.loops[i];
      loop.loader = image_.loaders()[i].name.view();
      std::sort(loop.ends_ns.begin(), loop.ends_ns.end());
    }
  }

  const SegmentImage& image_;
  History history_;
  bool here_ = false;
};

}  // namespace

History read_history(const SegmentImage& image) { return HistoryReader(image).read(); }

History read_history(const std::string& path) {
  SegmentImage image;
  image.include_history();
  image.read_file(path);
  return read_history(image);
}

}  // namespace headrace::profile
