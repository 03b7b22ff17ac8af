#include "headrace/profile/registry.h"

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <string>

#include "headrace/metrics/page_backing.h"
#include "headrace/profile/aggregate_finished.h"
#include "headrace/profile/process_identity.h"
#include "profile/record_life.h"

namespace headrace::profile {
namespace {

/// "decode", then "decode#2", "decode#3", ...
std::string numbered(std::string_view base, int number) {
  // Room for the number is kept inside the record, whatever the length of the name.
  std::string name(cut_at_character(base, kNameBytes - 12));
  if (name.size() < base.size()) name += "\xE2\x80\xA6";  // ...
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

void raise_high_water(Segment& segment, Section section, std::uint32_t to) {
  std::atomic<std::uint32_t>& mark = segment.header().high_water[static_cast<std::size_t>(section)];
  std::uint32_t seen = mark.load(std::memory_order_relaxed);
  while (seen < to && !mark.compare_exchange_weak(seen, to, std::memory_order_relaxed)) {
  }
}

}  // namespace

// Before anybody looks at or claims a record that was never given out: its pages may still be a hole of the
// file. Two processes may do it at once; both have done it before one of them raises the high-water mark.
bool Registry::back_record(Section section, std::uint32_t index) noexcept {
  if (index < segment_.given_out(section)) return true;
  return segment_.back_record(section, index) &&
         (section != Section::workers || segment_.back_record(Section::deliveries, index));
}

int Registry::claim(std::atomic<std::uint32_t>* first, std::size_t stride, Section section,
                    std::uint32_t free_value, std::uint32_t claimed_value) {
  for (std::uint32_t i = 0; i < info_of(section).count; ++i) {
    if (!back_record(section, i)) return -1;
    auto* life = reinterpret_cast<std::atomic<std::uint32_t>*>(reinterpret_cast<char*>(first) + stride * i);
    std::uint32_t expected = free_value;
    // Acquire pairs with the release of whoever freed the record: its old contents are settled.
    if (life->load(std::memory_order_relaxed) == free_value &&
        life->compare_exchange_strong(expected, claimed_value, std::memory_order_acquire)) {
      raise_high_water(segment_, section, i + 1);
      return static_cast<int>(i);
    }
  }
  return -1;
}

metrics::RemoteCell* Registry::remote_cell(std::uint32_t owner) noexcept {
  metrics::RemoteCell* cells = segment_.remotes();
  for (std::uint32_t i = 0; i < segment_.given_out(Section::remotes); ++i) {
    if (cells[i].owner.load(std::memory_order_relaxed) == owner) return &cells[i];
  }
  const int found = claim(&cells[0].owner, sizeof(metrics::RemoteCell), Section::remotes, 0, owner);
  return found < 0 ? nullptr : &cells[found];
}

metrics::RemoteTraffic* Registry::remote_traffic() noexcept {
  if (segment_.given_out(Section::remote_traffic) == 0) {
    if (!segment_.back_record(Section::remote_traffic, 0)) return nullptr;
    raise_high_water(segment_, Section::remote_traffic, 1);
  }
  return &segment_.remote_traffic();
}

int Registry::operator_id(const OperatorSpec& spec) {
  OperatorRecord* records = segment_.operators();
  const std::string_view kind = cut_at_character(spec.kind, records[0].kind.size() - 1);
  const bool wrapped = (spec.flags & kIsWrappedObject) != 0;
  const auto is_same = [&](OperatorRecord& record) {
    return record.key == spec.key && text_of(record.kind) == kind &&
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
  made.stage.store(spec.stage);
  std::copy(kind.begin(), kind.end(), made.kind.begin());
  std::copy_n(spec.parameter.begin(), std::min(spec.parameter.size(), made.parameter.size() - 1),
              made.parameter.begin());
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
  // Release: a reader that sees it live sees its name.
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
      const bool is_new = i >= segment_.given_out(section);
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
    raise_high_water(segment_, section, static_cast<std::uint32_t>(first_free) + 1);
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
      raise_high_water(segment_, Section::annotations, i + 1);
      // Release: a reader that sees it live sees its name.
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
  // A queue of the same name and size whose object is gone: the next epoch's. It continues where that one
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
  for (LoaderRecord& record : segment_.known_loaders()) {
    std::uint32_t closed = life_of(RecordLife::closed);
    if (record.life.load(std::memory_order_acquire) == closed && record.identity.load() == identity &&
        is_numbered(record.name.view(), base) &&
        record.life.compare_exchange_strong(closed, life_of(RecordLife::live), std::memory_order_acq_rel)) {
      return static_cast<int>(&record - segment_.loaders());
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
    return std::ranges::any_of(segment_.known_loaders(), [&](const LoaderRecord& record) {
      return is_live(record.life.load(std::memory_order_acquire)) && record.name.view() == name;
    });
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
  return std::ranges::any_of(segment_.known_loaders(), [&](const LoaderRecord& record) {
    return &record - segment_.loaders() != loader && is_live(record.life.load(std::memory_order_acquire)) &&
           record.source_operator.load() == op + 1;
  });
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
  cell.place.store(static_cast<std::uint8_t>(place));
  cell.is_loop.store(is_loop ? 1 : 0);
  return &cell;
}

}  // namespace headrace::profile
