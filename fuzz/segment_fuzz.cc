// Bytes as a segment file: the reader refuses them or makes a profile of them, and nothing else.
//
// The first byte of the input chooses:
//   even  the rest is the file, from its first byte on
//   odd   the rest is a list of patches to a valid segment, so that the fuzzer gets past the header:
//         [section, record low, record high, offset low, offset high, length, bytes...], again and again.
//         Records and offsets are taken modulo what there is; a section past the last is the header's running
//         part. Inputs stay small, however large a segment is.
//   254   the rest is a list of patches to a valid copy (gzip): [offset low, offset high, byte], again and
//   again.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "demand.h"
#include "headrace/metrics/worker_probe.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/figures.h"
#include "headrace/profile/history.h"
#include "headrace/profile/profile_json.h"
#include "headrace/profile/registry.h"
#include "headrace/profile/segment.h"
#include "headrace/profile/segment_image.h"
#include "headrace/profile/snapshot.h"
#include "headrace/profile/stages.h"
#include "headrace/report/page.h"

namespace {

using namespace headrace;
using profile::Section;

/// A loader with a graph of its own: a worker process, its operators, hand-off and queues.
void add_framework_loader(profile::Segment& segment, profile::Registry& registry, std::int64_t now) {
  const int loader = registry.loader_id("framework", -1);
  profile::LoaderRecord& record = segment.loaders()[loader];
  record.has_own_graph.store(1);
  record.workers.store(1);
  const std::string_view model =
      R"({"framework":"f","stages":[{},{"workers":1,"runs_in":"process","gets_work":"own_shard"},{},{}],)"
      R"("buffers":[{"from":1,"capacity":2,"is_window":true,"per_worker":true,"set_by":"ahead"}],)"
      R"("delivery":{"draws":0,"hands_over":2,"pins":3},"parameters":[{"name":"ahead","value":2}]})";
  std::copy(model.begin(), model.end(), record.model.begin());
  const std::string_view facts = "batch=Batch\ndevice=cuda:0\n";
  std::copy(facts.begin(), facts.end(), record.facts.begin());
  record.handoff.batches.store(3);
  record.sink.steps.store(3);
  record.sink.waits.store(2);
  record.sink.wait_ns.store(5000);
  metrics::WorkerCell* worker = registry.claim_worker(now);
  worker->loader.store(static_cast<std::uint32_t>(loader + 1));
  worker->siblings.store(1);
  metrics::WorkerProbe probe;
  probe.bind(worker, segment.cells(), &segment.header().loop_clock, now);
  for (const std::uint32_t stage : {profile::kStageDataset, profile::kStageCollate, profile::kStageHandoff}) {
    const int op = registry.operator_id({.name = "operator " + std::to_string(stage),
                                         .kind = stage == profile::kStageCollate ? "batch" : "source",
                                         .loader = loader,
                                         .stage = stage});
    record.sink.ledger_order[static_cast<std::size_t>(op)].store(100);
    metrics::OperatorCell* cell = registry.claim_cell(*worker, op, metrics::Place::worker, false);
    probe.enter(*cell, now += 1000, 17);
    probe.leave(now += 1'000'000, false);
  }
  using profile::QueueRole;
  for (const QueueRole role : {QueueRole::index, QueueRole::results, QueueRole::pinned, QueueRole::reorder})
    registry.queue_id({.name = "queue", .capacity = 2, .loader = loader, .role = role});
}

/// A history with something in every kind of track.
void add_history(profile::Segment& segment, profile::Registry& registry, int loader, int queue,
                 std::int64_t now) {
  metrics::HistoryStore history = segment.history();
  metrics::HistoryTrack* levels = history.at(segment.queues()[queue].cell.track.load() - 1);
  if (levels == nullptr) std::abort();
  levels->base_ns.store(now);
  for (const std::uint32_t level : {1, 3, 2}) {
    history.level_history(levels).keep_run(level, now, 0, now + 1'000'000);
    now += 1'000'000;
  }
  metrics::RangeHistory waits = registry.range_history(metrics::TrackKind::get_next, loader);
  metrics::RangeHistory batches = registry.range_history(metrics::TrackKind::batches, loader);
  for (metrics::HistoryTrack* track : {waits.track(), batches.track()})
    track->base_ns.store(levels->base_ns.load());
  for (std::uint64_t batch = 0; batch < 3; ++batch) {
    batches.range(now, now + 900'000, batch, 1);
    waits.wait(now, now + 1'000'000, batch, false);
    now += 2'000'000;
  }
  waits.end_loop(now);
  metrics::HistoryTrack* ranges = history.claim({.kind = metrics::TrackKind::annotation, .pid = 1}, now);
  history.range_history(ranges).range(now, now + 1'000'000, 0,
                                      static_cast<std::uint32_t>(registry.annotation_id("augment")));
}

/// Two workers, two operators and the sink around two queues, with a loop that has begun.
std::vector<char> valid_segment() {
  const auto segment = profile::Segment::create({"", ""}, 0);
  profile::Registry registry(*segment);
  profile::SegmentHeader& header = segment->header();
  header.opened_ns = 1'000'000;
  header.boot = 1;  // another machine: no process is looked at, so an input always reads the same
  header.checksum = profile::header_checksum(header);
  header.anchors.anchors[0].monotonic_ns.store(header.opened_ns);
  header.loop_clock.open(header.opened_ns);
  header.loop_clock.resume(header.opened_ns + 1000);
  const int read = registry.operator_id({.name = "read", .kind = "source"});
  const int decode = registry.operator_id({.name = "decode"});
  const int paths = registry.queue_id("paths", 4);
  const int images = registry.queue_id("images", 300);
  const int loader = registry.loader_id("train", decode);
  std::int64_t now = header.opened_ns + 2000;
  for (const int op : {read, decode}) {
    metrics::WorkerCell* worker = registry.claim_worker(now);
    metrics::OperatorCell* cell = registry.claim_cell(*worker, op, metrics::Place::worker, false);
    metrics::WorkerProbe probe;
    probe.bind(worker, segment->cells(), &header.loop_clock, now);
    probe.keep_history(segment->history());
    probe.enter(*cell, now += 1000);
    probe.leave(now += 300'000'000, false);
    if (op == decode) probe.edge(static_cast<std::uint32_t>(paths), false, true);
    probe.edge(static_cast<std::uint32_t>(op == decode ? images : paths), true, true);
  }
  metrics::SinkCell& sink = segment->loaders()[loader].sink;
  sink.queues.store(std::uint64_t{1} << images);
  sink.waits.store(1);
  sink.wait_ns.store(1000);
  add_framework_loader(*segment, registry, now);
  add_history(*segment, registry, loader, images, now);
  header.anchors.add({now, now});
  const auto* bytes = static_cast<const char*>(segment->data());
  return {bytes, bytes + segment->size()};
}

/// One file in memory that every input is written into; only what the last input changed is put back.
class Workbench {
 public:
  Workbench() : valid_(valid_segment()), path_("/proc/self/fd/") {
    fd_ = memfd_create("segment", MFD_CLOEXEC);
    if (fd_ < 0) std::abort();
    path_ += std::to_string(fd_);
    profile::SegmentImage image;
    image.include_history();
    image.read_memory(valid_.data(), valid_.size());
    valid_copy_ = image.pack();
  }

  const std::string& path() const { return path_; }

  void write_raw(const std::uint8_t* data, std::size_t size) {
    resize(size);
    put(data, size, 0);
    patched_.assign(1, {0, valid_.size()});
  }

  void write_patched_copy(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t kPatch = 3;
    std::vector<std::uint8_t> copy = valid_copy_;
    for (; size >= kPatch; data += kPatch, size -= kPatch)
      copy[static_cast<std::size_t>(data[0] | data[1] << 8) % copy.size()] = data[2];
    write_raw(copy.data(), copy.size());
  }

  void write_patched(const std::uint8_t* data, std::size_t size) {
    restore();
    constexpr std::size_t kHead = 6;
    const auto& header = *reinterpret_cast<const profile::SegmentHeader*>(valid_.data());
    while (size > kHead) {
      const std::size_t length = std::min<std::size_t>(data[5], size - kHead);
      std::uint64_t first = offsetof(profile::SegmentHeader, loop_clock);
      std::uint64_t room = sizeof(profile::SegmentHeader) - first;
      const std::size_t which = data[0] % (profile::kSections + 1);
      if (which < profile::kSections) {
        const profile::SectionInfo& info = header.sections[which];
        first = info.offset + std::uint64_t{info.stride} * ((data[1] | data[2] << 8) % info.count);
        room = info.stride;
      }
      const std::uint64_t at = first + static_cast<std::uint64_t>(data[3] | data[4] << 8) % room;
      const std::size_t bytes = std::min<std::uint64_t>(length, first + room - at);
      put(data + kHead, bytes, at);
      patched_.push_back({at, bytes});
      data += kHead + length;
      size -= kHead + length;
    }
  }

 private:
  struct Range {
    std::uint64_t at;
    std::size_t bytes;
  };

  void resize(std::size_t size) {
    if (ftruncate(fd_, static_cast<off_t>(size)) != 0) std::abort();
  }
  void put(const void* from, std::size_t bytes, std::uint64_t at) {
    if (bytes > 0 && pwrite(fd_, from, bytes, static_cast<off_t>(at)) != static_cast<ssize_t>(bytes))
      std::abort();
  }
  void restore() {
    resize(valid_.size());
    for (const Range& range : patched_) put(valid_.data() + range.at, range.bytes, range.at);
    patched_.clear();
  }

  std::vector<char> valid_;
  std::vector<std::uint8_t> valid_copy_;
  std::vector<Range> patched_{{0, valid_.size()}};
  std::string path_;
  int fd_ = -1;
};

bool is_share(double value) { return value >= 0 && value <= 1 + 1e-9; }

/// What every report may rely on, whatever the file held.
void check(const profile::Profile& profile) {
  demand(std::isfinite(profile.elapsed_s) && profile.elapsed_s >= 0, "elapsed is a length of time");
  demand(is_share(profile.sink.wait_share) && is_share(profile.sink.starved_share), "the wait is a share");
  for (const profile::OperatorProfile& op : profile.operators) {
    demand(std::isfinite(op.busy_s) && op.busy_s >= 0, "busy is a length of time");
    demand(std::isfinite(op.demand_s) && op.demand_s >= 0, "demand is a length of time");
    demand(op.workers >= 1, "an operator has a worker");
    demand(is_share(op.states.busy) && is_share(op.states.idle), "states are shares");
  }
  for (const profile::QueueProfile& queue : profile.queues) {
    double sum = 0;
    for (const double share : queue.occupancy) sum += share;
    demand(queue.occupancy.empty() || std::abs(sum - 1) < 1e-6, "occupancy sums to 1");
  }
  demand(profile.windows.size() <= 4 * metrics::kWindows, "windows are bounded");
}

/// What every timeline may rely on.
void check(const profile::History& history) {
  demand(!history.anchors.empty(), "there is an anchor");
  for (const profile::WorkerStates& worker : history.workers) {
    std::int64_t last = 0;
    for (const profile::StateSlice& slice : worker.slices) {
      demand(slice.begin_ns >= last && slice.end_ns > slice.begin_ns, "slices lie end to end");
      demand(slice.op < static_cast<int>(history.operators.size()), "a slice's operator is known");
      demand(is_share(slice.busy), "busy is a share");
      last = slice.end_ns;
    }
  }
  for (const profile::LoopHistory& loop : history.loops) {
    std::int64_t last = 0;
    for (const profile::GetNextCall& call : loop.calls) {
      demand(call.begin_ns >= last && call.end_ns >= call.begin_ns, "calls lie end to end");
      demand(is_share(call.share), "waiting is a share");
      last = call.end_ns;
    }
  }
}

void read(const std::string& path) {
  // Used again and again, as a live report does: nothing of an earlier input may show.
  static profile::SegmentImage image;
  image.include_history();
  try {
    image.read_file(path);
  } catch (const SegmentError&) {
    return;
  }
  const profile::History history = profile::read_history(image);
  check(history);
  profile::Profile named;
  named.loader = "framework";
  report::page_json(named, {}, {&history, 0.001, 0.5});
  for (const profile::LoaderSummary& loader : profile::list_loaders(image)) {
    profile::SegmentFigures::of(image, loader.index);
    const profile::Profile all = profile::read_profile(image, loader.index);
    check(all);
    check(profile::read_profile(image, loader.index, &image));
    profile::profile_from_json(profile::profile_to_json(all));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Workbench workbench;
  if (size == 0) return 0;
  if (data[0] == 254) {
    workbench.write_patched_copy(data + 1, size - 1);
  } else if (data[0] % 2 == 0) {
    workbench.write_raw(data + 1, size - 1);
  } else {
    workbench.write_patched(data + 1, size - 1);
  }
  read(workbench.path());
  return 0;
}
