#include "headrace/profile/registry.h"

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <string>

#include "headrace/metrics/page_backing.h"
#include "headrace/metrics/worker_probe.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/retire.h"

namespace headrace::profile {
namespace {

constexpr auto life_of(RecordLife life) { return static_cast<std::uint32_t>(life); }
constexpr auto life_of(metrics::WorkerLife life) { return static_cast<std::uint32_t>(life); }

bool is_live(std::uint32_t life) {
  return life == life_of(RecordLife::live) || life == life_of(RecordLife::closed);
}

/// "decode", then "decode#2", "decode#3", ...
std::string numbered(std::string_view base, int number) {
  // Room for the number is kept inside the record, whatever the length of the name.
  std::string name(base.substr(0, kNameBytes - 12));
  if (name.size() < base.size()) {
    while (!name.empty() && (static_cast<unsigned char>(name.back()) & 0xC0U) == 0x80U) name.pop_back();
    if (!name.empty() && (static_cast<unsigned char>(name.back()) & 0x80U) != 0) name.pop_back();
    name += "\xE2\x80\xA6";  // ...
  }
  if (number > 1) name += "#" + std::to_string(number);
  return name;
}

/// True for "decode" and "decode#2" of base "decode".
bool is_numbered(std::string_view name, std::string_view base) {
  const std::string first = numbered(base, 1);
  return name == first || name.starts_with(first + "#");
}

/// The life of a record, when whoever claimed it has written it (a microsecond). A process killed in between
/// leaves it claimed for ever: after 10 ms it is passed over.
std::uint32_t settled(const std::atomic<std::uint32_t>& life) {
  for (int attempt = 0;; ++attempt) {
    // Acquire pairs with the release that publishes a record: its name is complete.
    const std::uint32_t seen = life.load(std::memory_order_acquire);
    if (seen != life_of(RecordLife::claimed) || attempt == 200) return seen;
    const timespec pause{0, 50'000};
    nanosleep(&pause, nullptr);
  }
}

template <class Record>
int loader_of(const Record& record) {
  return static_cast<int>(record.loader.load()) - 1;
}

void raise_high_water(std::atomic<std::uint32_t>& mark, std::uint32_t to) {
  std::uint32_t seen = mark.load(std::memory_order_relaxed);
  while (seen < to && !mark.compare_exchange_weak(seen, to, std::memory_order_relaxed)) {
  }
}

}  // namespace

std::uint32_t Registry::given_out(Section section) const noexcept {
  const auto which = static_cast<std::size_t>(section);
  return std::min(segment_.header().high_water[which].load(std::memory_order_relaxed),
                  segment_.header().sections[which].count);
}

// Before anybody looks at or claims a record that was never given out: its pages may still be a hole of the
// file. Two processes may do it at once; both have done it before one of them raises the high-water mark.
bool Registry::back_record(Section section, std::uint32_t index) noexcept {
  if (index < given_out(section)) return true;
  return segment_.back_record(section, index) &&
         (section != Section::workers || segment_.back_record(Section::deliveries, index));
}

int Registry::claim(std::atomic<std::uint32_t>* first, std::size_t stride, Section section,
                    std::uint32_t free_value, std::uint32_t claimed_value) {
  const std::uint32_t count = segment_.header().sections[static_cast<std::size_t>(section)].count;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!back_record(section, i)) return -1;
    auto* life = reinterpret_cast<std::atomic<std::uint32_t>*>(reinterpret_cast<char*>(first) + stride * i);
    std::uint32_t expected = free_value;
    // Acquire pairs with the release of whoever freed the record: its old contents are settled.
    if (life->load(std::memory_order_relaxed) == free_value &&
        life->compare_exchange_strong(expected, claimed_value, std::memory_order_acquire)) {
      raise_high_water(segment_.header().high_water[static_cast<std::size_t>(section)], i + 1);
      return static_cast<int>(i);
    }
  }
  return -1;
}

int Registry::operator_id(const OperatorSpec& spec) {
  OperatorRecord* records = segment_.operators();
  const std::string_view kind = spec.kind.substr(0, records[0].kind.size() - 1);
  const bool wrapped = (spec.flags & kIsWrappedObject) != 0;
  const auto is_same = [&](OperatorRecord& record) {
    return record.key == spec.key && std::string_view(record.kind.data()) == kind &&
           !(wrapped && feeds_another(static_cast<std::uint32_t>(&record - records), spec.feeds));
  };
  const auto find = [&] {
    return find_or_claim(std::span(records, kMaxOperators), Section::operators, spec.name, spec.loader,
                         is_same);
  };
  Found found = find();
  while (found.id < 0 && fold_loader()) found = find();
  if (found.id < 0) segment_.header().dropped.operators.add(1);
  if (!found.is_new) return found.id;
  OperatorRecord made{};
  made.name.assign(found.name);
  made.key = spec.key;
  made.loader.store(static_cast<std::uint32_t>(spec.loader + 1));
  made.stage = spec.stage;
  std::copy(kind.begin(), kind.end(), made.kind.begin());
  std::copy_n(spec.knob.begin(), std::min(spec.knob.size(), made.knob.size() - 1), made.knob.begin());
  for (std::size_t i = 0; i < std::min(spec.inputs.size(), made.inputs.size()); ++i) {
    made.inputs[i] = static_cast<std::uint32_t>(spec.inputs[i] + 1);
  }
  for (std::size_t i = 0; i < std::min(spec.outputs.size(), made.outputs.size()); ++i) {
    made.outputs[i] = static_cast<std::uint32_t>(spec.outputs[i] + 1);
  }
  OperatorRecord& record = records[found.id];
  record.flags.store(spec.flags);
  constexpr std::size_t kKey = offsetof(OperatorRecord, key);
  store_words(&record.key, &made.key, sizeof(OperatorRecord) - kKey);
  // Release: whoever sees it live sees its name.
  record.life.store(life_of(RecordLife::live), std::memory_order_release);
  return found.id;
}

// Two processes that meet an operator at the same moment must get one record. Both look through the whole
// table, wait where another one is still writing a name, and claim the first free record: one of them wins,
// the other looks again.
template <class Record, class IsSame>
Registry::Found Registry::find_or_claim(std::span<Record> records, Section section, std::string_view base,
                                        int loader, IsSame&& is_same) {
  for (int number = 1;;) {
    Found found{-1, false, numbered(base, number)};
    bool taken = false;
    int first_free = -1;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const bool is_new = i >= given_out(section);
      // Behind the records that were ever given out there are only free ones; the first of them will do.
      if (is_new && first_free >= 0) break;
      if (is_new && !back_record(section, static_cast<std::uint32_t>(i))) break;
      const std::uint32_t life = settled(records[i].life);
      if (life == life_of(RecordLife::free) && first_free < 0) first_free = static_cast<int>(i);
      if (!is_live(life) || loader_of(records[i]) != loader || records[i].name.view() != found.name) continue;
      taken = true;
      found.id = static_cast<int>(i);
      if (is_same(records[i])) return found;
    }
    found.id = -1;
    if (taken) {
      ++number;
      continue;
    }
    if (first_free < 0) return found;
    std::uint32_t expected = life_of(RecordLife::free);
    auto& life = records[static_cast<std::size_t>(first_free)].life;
    if (!life.compare_exchange_strong(expected, life_of(RecordLife::claimed), std::memory_order_acquire))
      continue;
    raise_high_water(segment_.header().high_water[static_cast<std::size_t>(section)],
                     static_cast<std::uint32_t>(first_free) + 1);
    found.id = first_free;
    found.is_new = true;
    return found;
  }
}

bool Registry::allot_bins(metrics::QueueCell& cell, std::int64_t capacity) {
  constexpr std::uint32_t kUnboundedBins = 257;
  // A record that was freed keeps its bins.
  if (cell.bins.load() > 0 && cell.capacity.load() == capacity) {
    for (std::uint32_t i = 0; i < cell.bins.load(); ++i) segment_.bins()[cell.first_bin.load() + i].store(0);
    return true;
  }
  std::atomic<std::uint32_t>& used = segment_.header().bins_used;
  for (std::uint32_t limit :
       {capacity > 0 ? kMaxBinsPerQueue : kUnboundedBins, std::uint32_t{129}, std::uint32_t{17}}) {
    const metrics::OccupancyBins bins = metrics::OccupancyBins::make(capacity, limit);
    std::uint32_t first = used.load(std::memory_order_relaxed);
    while (first + bins.bins <= kMaxBins) {
      if (!metrics::back_pages(segment_.bins() + first, bins.bins * sizeof(std::int64_t))) return false;
      if (!used.compare_exchange_weak(first, first + bins.bins, std::memory_order_relaxed)) continue;
      cell.capacity.store(capacity);
      cell.levels_per_bin.store(bins.levels_per_bin);
      cell.bins.store(bins.bins);
      cell.first_bin.store(first);
      return true;
    }
  }
  return false;
}

// A queue is empty from the moment it is there; the time before, of other loops, is not its own.
void Registry::begin_occupancy(metrics::QueueCell& cell) {
  const metrics::LoopClock::Reading clock = segment_.header().loop_clock.read(metrics::Clock::now_ns());
  const metrics::SeqlockWrite write(cell.lock);
  cell.occupancy.level.store(0);
  cell.occupancy.since_ns.store(clock.loop_ns);
  if (clock.begun) cell.begun.store(1);
}

void Registry::begin_levels(std::uint32_t queue) {
  const std::int64_t now = metrics::Clock::now_ns();
  metrics::HistoryStore history = segment_.history();
  metrics::HistoryTrack* track =
      history.claim({.kind = metrics::TrackKind::queue, .subject = queue + 1}, now);
  history.level_history(track).open(0, now);
  segment_.queues()[queue].cell.track.store(track == nullptr ? 0 : history.index(*track) + 1);
}

void Registry::leave_levels(metrics::QueueCell& cell, std::int64_t now) noexcept {
  metrics::HistoryStore history = segment_.history();
  metrics::HistoryTrack* track = history.at(cell.track.load() - 1);
  cell.track.store(0);
  if (track == nullptr) return;
  history.level_history(track).close(0, now);
  metrics::HistoryStore::release(*track);
}

metrics::RangeHistory Registry::range_history(metrics::TrackKind kind, int loader) {
  metrics::HistoryStore history = segment_.history();
  const metrics::TrackOwner owner{.kind = kind, .subject = static_cast<std::uint32_t>(loader + 1)};
  metrics::HistoryTrack* track = history.find_live(owner);
  if (track == nullptr) track = history.claim(owner, metrics::Clock::now_ns());
  return history.range_history(track);
}

void Registry::leave_tracks_of_gone_writers() noexcept {
  metrics::HistoryStore history = segment_.history();
  const metrics::AnchorRing& anchors = segment_.header().anchors;
  std::int64_t last_alive = 0;
  for (const metrics::Anchor& anchor : anchors.anchors)
    last_alive = std::max(last_alive, anchor.monotonic_ns.load());
  for (std::uint32_t i = 0; i < kMaxTracks; ++i) {
    metrics::HistoryTrack& track = *history.at(i);
    if (track.life.load(std::memory_order_acquire) != static_cast<std::uint32_t>(metrics::TrackLife::live))
      continue;
    const int pid = track.pid.load();
    if (pid == 0 || pid == current_pid() || process_alive(pid, track.process_start.load())) continue;
    history.leave_for(track, last_alive);
  }
}

int Registry::annotation_id(std::string_view name) {
  AnnotationName* names = segment_.annotations();
  for (std::uint32_t i = 0; i < kMaxAnnotations; ++i) {
    std::uint32_t free = life_of(RecordLife::free);
    if (names[i].life.load(std::memory_order_relaxed) == free &&
        names[i].life.compare_exchange_strong(free, life_of(RecordLife::claimed),
                                              std::memory_order_acquire)) {
      names[i].name.assign(name);
      raise_high_water(segment_.header().high_water[static_cast<std::size_t>(Section::annotations)], i + 1);
      // Release: whoever sees it live sees its name.
      names[i].life.store(life_of(RecordLife::live), std::memory_order_release);
      return static_cast<int>(i);
    }
    if (settled(names[i].life) == life_of(RecordLife::live) && names[i].name.view() == name)
      return static_cast<int>(i);
  }
  segment_.header().dropped.annotations.add(1);
  return -1;
}

int Registry::queue_id(const QueueSpec& spec) {
  QueueRecord* records = segment_.queues();
  // A queue of the same name and size whose object is gone: the next epoch's. It goes on where that one
  // ended.
  const auto goes_on = [capacity = spec.capacity](QueueRecord& record) {
    std::uint32_t closed = life_of(RecordLife::closed);
    return record.cell.capacity.load() == capacity &&
           record.life.compare_exchange_strong(closed, life_of(RecordLife::live), std::memory_order_acq_rel);
  };
  const auto find = [&] {
    return find_or_claim(std::span(records, kMaxQueues), Section::queues, spec.name, spec.loader, goes_on);
  };
  Found found = find();
  while (found.id < 0 && fold_loader()) found = find();
  if (found.id >= 0 && !found.is_new) {
    begin_occupancy(records[found.id].cell);
    begin_levels(static_cast<std::uint32_t>(found.id));
    return found.id;
  }
  if (found.id < 0 || !allot_bins(records[found.id].cell, spec.capacity)) {
    if (found.id >= 0) records[found.id].life.store(life_of(RecordLife::free), std::memory_order_release);
    segment_.header().dropped.queues.add(1);
    return -1;
  }
  records[found.id].name.assign(found.name);
  records[found.id].loader.store(static_cast<std::uint32_t>(spec.loader + 1));
  records[found.id].role.store(static_cast<std::uint32_t>(spec.role));
  records[found.id].from.store(static_cast<std::uint32_t>(spec.edge.from + 1));
  records[found.id].to.store(static_cast<std::uint32_t>(spec.edge.to + 1));
  begin_occupancy(records[found.id].cell);
  begin_levels(static_cast<std::uint32_t>(found.id));
  records[found.id].life.store(life_of(RecordLife::live), std::memory_order_release);
  return found.id;
}

int Registry::reopened_loader(std::string_view base, std::uint64_t identity) {
  LoaderRecord* records = segment_.loaders();
  for (std::uint32_t i = 0; i < given_out(Section::loaders); ++i) {
    std::uint32_t closed = life_of(RecordLife::closed);
    if (records[i].life.load(std::memory_order_acquire) == closed && records[i].identity.load() == identity &&
        is_numbered(records[i].name.view(), base) &&
        records[i].life.compare_exchange_strong(closed, life_of(RecordLife::live),
                                                std::memory_order_acq_rel)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

int Registry::loader_id(std::string_view base, int source_operator, std::uint64_t identity) {
  LoaderRecord* records = segment_.loaders();
  if (identity != 0) {
    const int reopened = reopened_loader(base, identity);
    if (reopened >= 0) return reopened;
  }
  const auto name_taken = [&](const std::string& name) {
    for (std::uint32_t i = 0; i < given_out(Section::loaders); ++i) {
      if (is_live(records[i].life.load(std::memory_order_acquire)) && records[i].name.view() == name)
        return true;
    }
    return false;
  };
  int number = 1;
  while (name_taken(numbered(base, number))) ++number;
  do {
    const int id = claim(&records[0].life, sizeof(LoaderRecord), Section::loaders, life_of(RecordLife::free),
                         life_of(RecordLife::claimed));
    if (id >= 0) {
      records[id].name.assign(numbered(base, number));
      records[id].source_operator.store(static_cast<std::uint32_t>(source_operator + 1));
      records[id].folded.store(0);
      records[id].identity.store(identity);
      records[id].life.store(life_of(RecordLife::live), std::memory_order_release);
      return id;
    }
  } while (fold_loader());
  segment_.header().dropped.loaders.add(1);
  return -1;
}

bool Registry::feeds_another(std::uint32_t op, int loader) const noexcept {
  const LoaderRecord* records = segment_.loaders();
  for (std::uint32_t i = 0; i < given_out(Section::loaders); ++i) {
    if (static_cast<int>(i) != loader && is_live(records[i].life.load(std::memory_order_acquire)) &&
        records[i].source_operator.load() == op + 1)
      return true;
  }
  return false;
}

bool Registry::owned_here() const noexcept { return segment_.header().owner_pid == current_pid(); }

bool Registry::fold_loader() {
  if (!owned_here()) return false;
  LoaderRecord* records = segment_.loaders();
  LoaderRecord* target = nullptr;
  LoaderRecord* oldest = nullptr;
  for (std::uint32_t i = 0; i < given_out(Section::loaders); ++i) {
    LoaderRecord& record = records[i];
    if (record.life.load(std::memory_order_acquire) != life_of(RecordLife::closed)) continue;
    if (record.folded.load() > 0) {
      target = &record;
    } else if (oldest == nullptr || record.sink.last_event_ns.load() < oldest->sink.last_event_ns.load()) {
      oldest = &record;
    }
  }
  if (oldest == nullptr) return false;
  forget_loader(static_cast<std::uint32_t>(oldest - records));
  if (target == nullptr) {
    oldest->name.assign("(earlier loaders)");
    oldest->identity.store(0);
    oldest->folded.store(1);
    return true;
  }
  add_sink(target->sink, oldest->sink);
  target->folded.bump(1);
  clear_sink(oldest->sink);
  oldest->life.store(life_of(RecordLife::free), std::memory_order_release);
  return true;
}

// Its numbers go to others: what belonged to this one must not show as theirs.
void Registry::forget_loader(std::uint32_t index) {
  LoaderRecord& loader = segment_.loaders()[index];
  clear_framework_facts(loader);
  forget_operators(loader.sink);
  for (const auto kind :
       {metrics::TrackKind::get_next, metrics::TrackKind::batches, metrics::TrackKind::worker})
    segment_.history().disown(kind, index + 1);
  constexpr std::uint32_t kNobodys = ~std::uint32_t{0};
  const std::uint32_t its = index + 1;
  for (std::uint32_t i = 0; i < given_out(Section::workers); ++i) {
    if (segment_.workers()[i].loader.load() == its) segment_.workers()[i].loader.store(kNobodys);
  }
  for (std::uint32_t i = 0; i < kMaxOperators; ++i) {
    OperatorRecord& record = segment_.operators()[i];
    if (!is_live(record.life.load(std::memory_order_acquire))) continue;
    if (record.loader.load() == its || i + 1 == loader.source_operator.load()) free_operator(i);
  }
  loader.source_operator.store(0);
  for (std::uint32_t i = 0; i < given_out(Section::queues); ++i) {
    QueueRecord& record = segment_.queues()[i];
    if (!is_live(record.life.load(std::memory_order_acquire)) || record.loader.load() != its) continue;
    record.loader.store(kNobodys);
    if (record.life.load(std::memory_order_acquire) == life_of(RecordLife::closed)) free_queue(i);
  }
}

// Cells of workers that are gone are freed. Those of a thread that goes on stay its own, emptied: it may run
// whatever operator gets this number next.
void Registry::free_operator(std::uint32_t op) {
  for (std::uint32_t i = 0; i < given_out(Section::cells); ++i) {
    metrics::OperatorCell& cell = segment_.cells()[i];
    const std::uint32_t owner = cell.owner.load();
    if (owner == 0 || owner > kMaxWorkers || cell.operator_id.load() != op) continue;
    const bool goes_on = segment_.workers()[owner - 1].life.load(std::memory_order_acquire) ==
                         life_of(metrics::WorkerLife::live);
    empty_cell(cell);
    if (goes_on) continue;
    // Release pairs with the acquire of the next claim: nobody reads the old figures there.
    std::atomic_thread_fence(std::memory_order_release);
    cell.owner.store(0);
  }
  segment_.operators()[op].life.store(life_of(RecordLife::free), std::memory_order_release);
}

void Registry::free_queue(std::uint32_t queue) {
  QueueRecord& record = segment_.queues()[queue];
  segment_.history().disown(metrics::TrackKind::queue, queue + 1);
  for (std::uint32_t i = 0; i < given_out(Section::workers); ++i) {
    for (metrics::WorkerEdge& edge : segment_.workers()[i].edges) {
      if (edge.queue.load() == queue + 1) edge.items.store(0);
    }
  }
  clear_queue(record.cell);
  record.life.store(life_of(RecordLife::free), std::memory_order_release);
}

metrics::WorkerCell* Registry::claim_worker(std::int64_t now) {
  metrics::WorkerCell* workers = segment_.workers();
  const int index = claim(&workers[0].life, sizeof(metrics::WorkerCell), Section::workers,
                          life_of(metrics::WorkerLife::free), life_of(metrics::WorkerLife::claimed));
  if (index < 0) {
    segment_.header().dropped.workers.add(1);
    return nullptr;
  }
  metrics::WorkerCell& worker = workers[index];
  clear_worker(worker);
  segment_.deliveries()[index].taken.store(0, std::memory_order_relaxed);
  worker.pid.store(current_pid());
  worker.tid.store(current_tid());
  worker.process_start.store(process_start(current_pid()));
  worker.started_ns.store(now);
  worker.last_alive_ns.store(now);
  worker.life.store(life_of(metrics::WorkerLife::live), std::memory_order_release);
  return &worker;
}

metrics::OperatorCell* Registry::claim_cell(const metrics::WorkerCell& worker, int operator_id,
                                            metrics::Place place, bool is_loop) {
  metrics::OperatorCell* cells = segment_.cells();
  const auto owner = static_cast<std::uint32_t>(&worker - segment_.workers()) + 1;
  static_assert(sizeof(metrics::Relaxed<std::uint32_t>) == sizeof(std::atomic<std::uint32_t>));
  const int index = claim(reinterpret_cast<std::atomic<std::uint32_t>*>(&cells[0].owner),
                          sizeof(metrics::OperatorCell), Section::cells, 0, owner);
  if (index < 0) {
    segment_.header().dropped.cells.add(1);
    return nullptr;
  }
  metrics::OperatorCell& cell = cells[index];
  clear_cell(cell);
  cell.operator_id.store(static_cast<std::uint32_t>(operator_id));
  cell.place.store(static_cast<std::uint32_t>(place));
  cell.is_loop.store(is_loop ? 1 : 0);
  return &cell;
}

bool Registry::is_crowded() const noexcept {
  Segment& segment = segment_;
  std::uint32_t used_workers = 0;
  std::uint32_t used_cells = 0;
  for (std::uint32_t i = 0; i < given_out(Section::workers); ++i) {
    used_workers += segment.workers()[i].life.load(std::memory_order_relaxed) != 0 ? 1 : 0;
  }
  for (std::uint32_t i = 0; i < given_out(Section::cells); ++i)
    used_cells += segment.cells()[i].owner.load() != 0 ? 1 : 0;
  return used_workers > kMaxWorkers * 3 / 4 || used_cells > kMaxCells * 3 / 4;
}

// Workers that stood at the same place of the graph are folded together, so the graph survives them.
metrics::WorkerCell* Registry::retired_worker(const metrics::WorkerCell& leaving) {
  metrics::WorkerCell* workers = segment_.workers();
  const auto same_place = [&](const metrics::WorkerCell& worker) {
    for (std::size_t i = 0; i < worker.edges.size(); ++i) {
      if (worker.edges[i].queue.load() != leaving.edges[i].queue.load()) return false;
      if (worker.edges[i].is_put.load() != leaving.edges[i].is_put.load()) return false;
    }
    return true;
  };
  for (std::uint32_t i = 0; i < given_out(Section::workers); ++i) {
    const bool is_retired =
        workers[i].life.load(std::memory_order_acquire) == life_of(metrics::WorkerLife::retired);
    if (is_retired && same_place(workers[i])) return &workers[i];
  }
  metrics::WorkerCell* worker = claim_worker(metrics::Clock::now_ns());
  if (worker == nullptr) return nullptr;
  worker->pid.store(0);
  worker->tid.store(0);
  worker->ended_ns.store(worker->started_ns.load());
  worker->grid.closed.store(metrics::kWindows);
  worker->grid.doublings.store(leaving.grid.doublings.load());
  worker->life.store(life_of(metrics::WorkerLife::retired), std::memory_order_release);
  return worker;
}

// A worker that died in the middle of something: what was open is counted to its last sign of life.
void Registry::settle_gone(std::uint32_t index) {
  metrics::WorkerCell& worker = segment_.workers()[index];
  if (worker.life.load(std::memory_order_acquire) != life_of(metrics::WorkerLife::live)) return;
  if (worker.account.load() >= metrics::kOperatorAccount + kMaxCells) return;
  std::vector<metrics::OperatorCell*> owned;
  for (std::uint32_t i = 0; i < given_out(Section::cells); ++i) {
    if (segment_.cells()[i].owner.load() == index + 1) owned.push_back(&segment_.cells()[i]);
  }
  metrics::WorkerProbe probe;
  probe.take_over(worker, segment_.cells(), owned, segment_.header().loop_clock);
  probe.finish(worker.last_alive_ns.load());
}

// A worker that did nothing since the loop began still holds what it counted during start-up.
void Registry::forget_start_up(std::uint32_t index) {
  metrics::WorkerCell& worker = segment_.workers()[index];
  if (worker.begun.load() != 0) return;
  for (std::uint32_t i = 0; i < given_out(Section::cells); ++i) {
    if (segment_.cells()[i].owner.load() == index + 1) restart_cell(segment_.cells()[i]);
  }
  restart_worker(worker);
}

void Registry::fold_worker(std::uint32_t index) {
  metrics::WorkerCell& worker = segment_.workers()[index];
  metrics::WorkerCell* retired = retired_worker(worker);
  if (retired == nullptr) return;
  metrics::OperatorCell* cells = segment_.cells();
  settle_gone(index);
  const bool begun = segment_.header().loop_clock.read(0).begun;
  const auto retired_owner = static_cast<std::uint32_t>(retired - segment_.workers()) + 1;
  if (begun) forget_start_up(index);
  if (begun) forget_start_up(retired_owner - 1);
  std::vector<metrics::OperatorCell*> retired_cells;
  for (std::uint32_t i = 0; i < given_out(Section::cells); ++i) {
    if (cells[i].owner.load() == retired_owner) retired_cells.push_back(&cells[i]);
  }
  widen_retired(*retired, retired_cells, worker.grid.doublings.load());
  for (std::uint32_t i = 0; i < given_out(Section::cells); ++i) {
    metrics::OperatorCell& cell = cells[i];
    if (cell.owner.load() != index + 1) continue;
    align_windows(*retired, worker, cell);
    const auto same = std::find_if(retired_cells.begin(), retired_cells.end(), [&](const auto* candidate) {
      return candidate->operator_id.load() == cell.operator_id.load() &&
             candidate->place.load() == cell.place.load() && candidate->is_loop.load() == cell.is_loop.load();
    });
    if (same == retired_cells.end()) {
      // The first one to go becomes the retired cell itself; only its owner changes.
      cell.owner.store(retired_owner);
      continue;
    }
    add_cell(**same, cell);
    // Emptied before it is free: between a claim and its first item a reader must not see the old owner's
    // figures.
    clear_cell(cell);
    // Release pairs with the acquire of the next claim: the sums above are done with this cell.
    std::atomic_thread_fence(std::memory_order_release);
    cell.owner.store(0);
  }
  add_worker(*retired, worker);
  segment_.header().retired_workers.bump(1);
  worker.life.store(life_of(metrics::WorkerLife::free), std::memory_order_release);
}

int Registry::fold_finished_workers() {
  int folded = 0;
  metrics::WorkerCell* workers = segment_.workers();
  for (std::uint32_t i = 0; i < given_out(Section::workers); ++i) {
    const std::uint32_t life = workers[i].life.load(std::memory_order_acquire);
    bool gone = life == life_of(metrics::WorkerLife::finished);
    if (life == life_of(metrics::WorkerLife::live) && workers[i].pid.load() != current_pid()) {
      gone = !process_alive(workers[i].pid.load(), workers[i].process_start.load());
    }
    if (!gone) continue;
    fold_worker(i);
    ++folded;
  }
  return folded;
}

}  // namespace headrace::profile
