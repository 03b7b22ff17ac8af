// The bytes of a segment, drawn.
//
//     +--------------------+ 0
//     | SegmentHeader      |  magic, version, sections, clock: written once, under a checksum;
//     |                    |  loop clock, anchors, counts of what did not fit: written while running
//     +--------------------+
//     | loaders            |  kMaxLoaders   x LoaderRecord (name + SinkCell)
//     | operators          |  kMaxOperators x OperatorRecord (name, kind)
//     | queues             |  kMaxQueues    x QueueRecord (name + QueueCell)
//     | workers            |  kMaxWorkers   x WorkerCell
//     | deliveries         |  kMaxWorkers   x DeliveryRing, one per worker
//     | operator cells     |  kMaxCells     x OperatorCell, given out by need: not every worker runs every one
//     | occupancy bins     |  kMaxBins      x int64
//     | host               |  1             x HostCell
//     | remotes            |  kMaxRemotes   x RemoteCell, the requests of an operator to a remote service
//     | tracks             |  kMaxTracks    x HistoryTrack, the history that timelines show, given out by need
//     | history words      |  kHistoryWords x uint64, what the tracks hold
//     | annotations        |  kMaxAnnotations x AnnotationName
//     | remote traffic     |  1             x RemoteTraffic, what all requests share while they run
//     +--------------------+ total_bytes (<= 8 MiB)
//
// The file has this size; memory is allocated for what is used of it (Segment). Every record is claimed by
// one compare-and-swap on its first word and published by a release store, so processes share the tables
// without a lock. All offsets are in the header; a reader checks each of them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "headrace/metrics/anchors.h"
#include "headrace/metrics/clock.h"
#include "headrace/metrics/delivery_ring.h"
#include "headrace/metrics/handoff_cell.h"
#include "headrace/metrics/history_track.h"
#include "headrace/metrics/host_cell.h"
#include "headrace/metrics/loop_clock.h"
#include "headrace/metrics/operator_cell.h"
#include "headrace/metrics/queue_cell.h"
#include "headrace/metrics/remote_cell.h"
#include "headrace/metrics/sink_cell.h"
#include "headrace/metrics/worker_cell.h"

namespace headrace::profile {

inline constexpr std::array<char, 8> kMagic = {'H', 'R', 'S', 'E', 'G', '\r', '\n', '\x1a'};
inline constexpr std::uint32_t kLayoutVersion = 16;
inline constexpr std::uint32_t kByteOrder = 0x01020304;

inline constexpr std::uint32_t kMaxLoaders = 32;
inline constexpr std::uint32_t kMaxOperators = metrics::kLedgerOperators;
inline constexpr std::uint32_t kMaxQueues = 64;
inline constexpr std::uint32_t kMaxWorkers = 192;
inline constexpr std::uint32_t kMaxCells = 572;
inline constexpr std::uint32_t kMaxBins = 38 * 1024;
inline constexpr std::uint32_t kMaxBinsPerQueue = 4097;
inline constexpr std::uint32_t kMaxRemotes = 28;
inline constexpr std::uint32_t kMaxTracks = 128;
inline constexpr std::uint32_t kHistoryWords = 79 * 1024;
inline constexpr std::uint32_t kMaxAnnotations = 64;
inline constexpr std::size_t kNameBytes = 240;

/// Life of a table record.
enum class RecordLife : std::uint32_t { free = 0, claimed = 1, live = 2, closed = 3 };

/// Plain bytes into shared memory, as atomic words: a reader that copies the record meanwhile sees words old
/// or new. `to` is aligned to 8; `bytes` is a multiple of 8.
void store_words(void* to, const void* from, std::size_t bytes) noexcept;

/// The first `most` bytes, or fewer: UTF-8 is cut at a character's boundary.
std::string_view cut_at_character(std::string_view text, std::size_t most) noexcept;

/// Text of a record: up to the first zero, or all of it, as a damaged file may have none.
template <std::size_t kSize>
std::string_view text_of(const std::array<char, kSize>& bytes) noexcept {
  return {bytes.data(),
          static_cast<std::size_t>(std::find(bytes.begin(), bytes.end(), '\0') - bytes.begin())};
}

/// UTF-8, zero-terminated, cut at a character's boundary when it is too long.
struct alignas(8) Name {
  std::array<char, kNameBytes> bytes;
  void assign(std::string_view text) noexcept;
  std::string_view view() const noexcept { return text_of(bytes); }
};

/// Flags of an operator.
enum OperatorFlag : std::uint32_t {
  kIsWrappedObject = 1,   ///< the object given to wrap: its time inside GetNext
  kRunsOwnWorkers = 2,    ///< ... which is known to wait for workers of its own (a pool's results)
  kIsWorkerLoop = 4,      ///< a worker's loop between queue calls, named after its function
  kMarkedSerial = 8,      ///< the framework cannot run it more than once
  kOfTheLoop = 16,        ///< called in the steps of several loops, it is an operator of each of them
  kKeepsOrder = 32,       ///< its workers hand on in the order in which they took
  kRunsInProcesses = 64,  ///< its threads wait for processes that do the work
  kIsResizable = 128,     ///< its workers can be changed while the loop runs
};

struct alignas(64) OperatorRecord {
  std::atomic<std::uint32_t> life;
  metrics::Relaxed<std::uint32_t> flags;
  std::uint64_t key;  ///< tells two operators of one name apart (code object), 0: by name only
  std::array<char, 16> kind;
  std::array<char, 32> parameter;  ///< parameter that widens it, if not "<name>.workers"; "x<=8": up to 8
  metrics::Relaxed<std::uint32_t>
      loader;  ///< 1 + the loader whose own graph it belongs to; 0: it is shown where it runs
  metrics::Relaxed<std::uint32_t> stage;  ///< place in that graph: smaller ones come first
  std::array<std::uint32_t, 4> inputs;    ///< declared queues, 1 + index; 0: none
  std::array<std::uint32_t, 4> outputs;
  Name name;
  alignas(8) std::array<char, 192> functions;  ///< "name<tab>share<newline>" ..., zero-terminated
};

/// The contents of a queue of a framework's loader; the graph follows from it.
enum class QueueRole : std::uint32_t {
  user = 0,     ///< a queue of the user's own: who puts and gets tells where it stands
  index = 1,    ///< batches that a worker is to make
  results = 2,  ///< batches that are made and not yet received
  pinned = 3,   ///< batches in page-locked memory
  reorder = 4,  ///< batches that are received and wait for an older one, or for the sink
  between = 5,  ///< items between two stages of the loader's model, or before the sink
};

struct alignas(64) QueueRecord {
  std::atomic<std::uint32_t> life;
  metrics::Relaxed<std::uint32_t> flags;
  metrics::Relaxed<std::uint32_t> loader;  ///< 1 + loader; 0: a queue of the user's own
  metrics::Relaxed<std::uint32_t> role;    ///< QueueRole
  metrics::Relaxed<std::uint32_t> from;    ///< 1 + stage of its loader's model that fills it; 0: unknown
  metrics::Relaxed<std::uint32_t> to;      ///< 1 + stage that takes from it; 0: the sink
  Name name;
  metrics::QueueCell cell;
};

/// Gaps in the recording of a framework's loader, as the adapter found them.
enum LoaderGap : std::uint32_t {
  kNoIteratorDetail = 1,  ///< its iterator is not the one that is known
  kNoWorkerDetail = 2,    ///< nothing inside its workers
  kNoHandoffDetail = 4,   ///< how batches leave the workers
};

/// How the operators and queues of a loader are connected.
enum class LoaderGraph : std::uint32_t {
  by_threads = 0,  ///< as the threads' own calls tell
  window = 1,      ///< by role: workers make whole batches, each batch is followed
  stages = 2,      ///< operators and queues say which stages of the loader's model they are of
};

struct alignas(64) LoaderRecord {
  static constexpr std::size_t kModelBytes = 5120;
  static constexpr std::size_t kFactsBytes = 256;

  std::atomic<std::uint32_t> life;
  metrics::Relaxed<std::uint32_t> source_operator;  ///< 1 + id of the wrapped object's operator; 0: none
  metrics::Relaxed<std::uint32_t> folded;           ///< earlier loaders of this name counted in here
  metrics::Relaxed<std::uint32_t> has_own_graph;    ///< LoaderGraph
  metrics::Relaxed<std::uint32_t> gaps;             ///< LoaderGap
  metrics::Relaxed<std::uint32_t> workers;  ///< worker processes of the last pass; 0: in the sink's thread
  metrics::Relaxed<std::uint64_t> batch_bytes;  ///< largest batch of those that were looked at; 0: unknown
  metrics::Relaxed<std::uint64_t> ceiling_ns;   ///< measured step over cached batches; 0: not measured
  metrics::Relaxed<std::uint64_t>
      identity;  ///< of the object that loops: its next loop continues in this record; 0: none
  Name name;
  alignas(8) std::array<char, kModelBytes> model;  ///< LoaderModel as JSON, zero-terminated
  alignas(8) std::array<char, kFactsBytes> facts;  ///< "name=value\n" ...: what was seen while it ran
  metrics::HandoffCell handoff;
  metrics::SinkCell sink;
};

/// The user's name for a range of the program.
struct alignas(64) AnnotationName {
  std::atomic<std::uint32_t> life;
  Name name;
};

enum class Section : std::uint32_t {
  loaders,
  operators,
  queues,
  workers,
  deliveries,
  cells,
  bins,
  host,
  remotes,
  tracks,
  words,
  annotations,
  remote_traffic,
  count
};
inline constexpr std::size_t kSections = static_cast<std::size_t>(Section::count);

struct SectionInfo {
  std::uint64_t offset;
  std::uint32_t stride;
  std::uint32_t count;
};

/// Dropped records; the report lists each. Every process of the run adds to them.
struct Dropped {
  metrics::Relaxed<std::uint64_t> operators;
  metrics::Relaxed<std::uint64_t> queues;
  metrics::Relaxed<std::uint64_t> workers;
  metrics::Relaxed<std::uint64_t> cells;
  metrics::Relaxed<std::uint64_t> loaders;
  metrics::Relaxed<std::uint64_t> annotations;
};

struct alignas(64) SegmentHeader {
  std::array<char, 8> magic;
  std::uint32_t layout_version;
  std::uint32_t byte_order;
  std::uint64_t total_bytes;
  std::array<SectionInfo, kSections> sections;
  metrics::ClockCalibration clock;
  std::int64_t opened_ns;  ///< Clock
  std::int64_t opened_realtime_ns;
  std::uint64_t owner_start;    ///< field 22 of /proc/pid/stat
  std::uint64_t boot;           ///< hash of the machine's boot id: same machine, same boot
  std::uint64_t pid_namespace;  ///< in which owner_pid is a process: containers have their own
  std::uint64_t identity;       ///< random; a run folder's pointer names it, so that only its own run does
  std::int32_t owner_pid;
  std::int32_t rank;
  std::uint64_t checksum;  ///< of every byte before it

  alignas(64) metrics::LoopClock loop_clock;
  metrics::Relaxed<std::uint32_t> closed;     ///< 1: the session was closed in order
  metrics::Relaxed<std::uint32_t> in_memory;  ///< 1: there was no file to be had, so no process can attach
  std::atomic<std::uint32_t> bins_used;
  std::atomic<std::uint32_t> words_used;
  std::array<std::atomic<std::uint32_t>, kSections>
      high_water;  ///< records ever given out: readers stop there
  metrics::Relaxed<std::uint64_t> retired_workers;
  Dropped dropped;
  metrics::AnchorRing anchors;
};

/// Positions of the sections in a segment of this version.
struct Layout {
  std::array<SectionInfo, kSections> sections;
  std::uint64_t total_bytes;
  static constexpr Layout current() noexcept;
};

constexpr Layout Layout::current() noexcept {
  Layout layout{{{
                    {0, sizeof(LoaderRecord), kMaxLoaders},
                    {0, sizeof(OperatorRecord), kMaxOperators},
                    {0, sizeof(QueueRecord), kMaxQueues},
                    {0, sizeof(metrics::WorkerCell), kMaxWorkers},
                    {0, sizeof(metrics::DeliveryRing), kMaxWorkers},
                    {0, sizeof(metrics::OperatorCell), kMaxCells},
                    {0, sizeof(std::int64_t), kMaxBins},
                    {0, sizeof(metrics::HostCell), 1},
                    {0, sizeof(metrics::RemoteCell), kMaxRemotes},
                    {0, sizeof(metrics::HistoryTrack), kMaxTracks},
                    {0, sizeof(metrics::HistoryWord), kHistoryWords},
                    {0, sizeof(AnnotationName), kMaxAnnotations},
                    {0, sizeof(metrics::RemoteTraffic), 1},
                }},
                sizeof(SegmentHeader)};
  const auto to_page = [&] { layout.total_bytes = (layout.total_bytes + 4095) / 4096 * 4096; };
  to_page();
  for (SectionInfo& section : layout.sections) {
    section.offset = layout.total_bytes;
    layout.total_bytes += std::uint64_t{section.stride} * section.count;
    to_page();
  }
  return layout;
}

inline constexpr Layout kLayout = Layout::current();

constexpr const SectionInfo& info_of(Section section) noexcept {
  return kLayout.sections[static_cast<std::size_t>(section)];
}

/// FNV-1a: equal in every process.
std::uint64_t hash_of(std::string_view bytes) noexcept;
/// The hash of the fixed part of a header.
std::uint64_t header_checksum(const SegmentHeader& header) noexcept;

}  // namespace headrace::profile
