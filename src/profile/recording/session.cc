#include "headrace/profile/session.h"

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "headrace/profile/live_pointer.h"
#include "headrace/profile/orphans.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/run_folder.h"
#include "headrace/profile/stages.h"
#include "headrace/profile/unnamed_runs.h"
#include "profile/record_life.h"

namespace headrace::profile {
namespace {

std::atomic<std::uint64_t> next_session_uid{1};

bool is_busy(const metrics::WorkerCell& worker) noexcept {
  return worker.account.load() >= metrics::kOperatorAccount && worker.is_sink.load() == 0;
}

}  // namespace

Session::Session(std::unique_ptr<Segment> segment)
    : segment_(std::move(segment)), registry_(*segment_), uid_(next_session_uid.fetch_add(1)) {}

std::shared_ptr<Session> Session::open(const SessionOptions& options) {
  metrics::Clock::calibrate();
  collect_orphans(options.run);
  std::string copy_path;
  std::string problem;
  if (!options.run.empty()) {
    problem = make_run_folder(options.run);
    if (problem.empty()) copy_path = free_copy_path(options.run, options.rank);
  }
  const Segment::Places places{shared_memory_path(),
                               copy_path.empty() ? "" : copy_path + std::string(kLiveSegmentSuffix)};
  std::shared_ptr<Session> session(new Session(Segment::create(places, options.rank)));
  session->rank_ = options.rank;
  session->run_ = options.run;
  session->unnamed_ = options.unnamed;
  session->copy_path_ = copy_path;
  session->owner_pid_ = current_pid();
  session->say_where_it_records(problem);
  return session;
}

std::shared_ptr<Session> Session::attach(const std::string& path) {
  std::shared_ptr<Session> session(new Session(Segment::attach(path)));
  session->rank_ = session->segment_->header().rank;
  return session;
}

Session::~Session() { close(); }

bool Session::owner() const noexcept { return owner_pid_ == current_pid(); }

bool Session::has_run() const noexcept {
  const std::scoped_lock lock(mutex_);
  return !run_.empty();
}

std::string Session::run() const {
  const std::scoped_lock lock(mutex_);
  return run_;
}

void Session::bind_run(const std::string& run, bool unnamed) {
  const std::scoped_lock lock(mutex_);
  if (!run_.empty() || !owner()) return;
  run_ = run;
  unnamed_ = unnamed;
  const std::string problem = make_run_folder(run);
  if (problem.empty()) copy_path_ = free_copy_path(run, rank_);
  say_where_it_records(problem);
}

// Links the live segment with the place of its copy, and says what a reader of the folder will not find.
void Session::say_where_it_records(const std::string& problem) {
  const std::string& live = segment_->path();
  if (!problem.empty()) {
    say("nothing will be left on disk, recording goes on in memory (" + problem + ")");
    return;
  }
  if (copy_path_.empty()) return;
  const std::string reason = write_live_pointer(copy_path_, LivePointer::to(segment_->header(), live));
  if (!live.empty()) write_home(live, copy_path_);
  if (live.empty()) {
    say("recording goes on in memory: operators in spawned processes are not recorded, and nothing is left "
        "should this process be killed (" +
        segment_->problem() + ")");
  } else if (!reason.empty()) {
    say("nothing can be written to the run folder now (" + reason + "); recording goes on in shared memory");
  } else if (!segment_->problem().empty()) {
    say(segment_->problem() + ": the recording is a file in the run folder");
  }
}

void Session::say(const std::string& line) noexcept try { messages_.push_back(line); } catch (...) {
  // No memory for the line.
}

void Session::tell(const std::string& line) noexcept {
  const std::scoped_lock lock(mutex_);
  say(line);
}

std::vector<std::string> Session::take_messages() noexcept {
  const std::scoped_lock lock(mutex_);
  return std::exchange(messages_, {});
}

void Session::note_report(int loader) noexcept {
  const std::scoped_lock lock(mutex_);
  if (loader < 0 || loader >= static_cast<int>(kMaxLoaders)) return;
  reported_steps_[static_cast<std::size_t>(loader)] = segment_->loaders()[loader].sink.steps.load();
}

bool Session::all_reported() const noexcept {
  return std::ranges::equal(segment_->known_loaders(),
                            std::span(reported_steps_).first(segment_->given_out(Section::loaders)), {},
                            [](const LoaderRecord& loader) { return loader.sink.steps.load(); });
}

std::string Session::write_copy(const std::string& path) noexcept {
  const std::scoped_lock one_at_a_time(copy_mutex_);
  return segment_->copy_to(path);
}

void Session::copy_out() noexcept {
  std::string path;
  {
    const std::scoped_lock lock(mutex_);
    if (!owner()) return;
    path = copy_path_;
  }
  if (!path.empty()) write_copy(path);  // the last one says what went wrong
}

void Session::close() noexcept try {
  std::string path;
  bool is_kept = true;
  {
    const std::scoped_lock lock(mutex_);
    if (closed_ || !owner()) return;
    closed_ = true;
    segment_->header().anchors.add_now();
    segment_->header().loop_clock.pause(metrics::Clock::now_ns());
    segment_->header().closed.store(1);
    path = copy_path_;
    is_kept = !unnamed_ || !all_reported();
  }
  const std::string& live = segment_->path();
  std::string problem;
  if (!path.empty() && is_kept) problem = write_copy(path);
  if (!problem.empty()) {
    // Without a copy the live file is all there is: it stays, for whoever reads the run.
    const std::scoped_lock lock(mutex_);
    std::error_code ignored;
    const bool is_gone = !std::filesystem::exists(run_, ignored);
    std::string where = "; it ends with this process";
    if (!live.empty() && is_gone) {
      where = "; headrace report " + live + " shows it until another program records";
    } else if (!live.empty()) {
      where = "; until tomorrow it stays in " + live + ", where headrace report " + run_ + " finds it";
    }
    say("the recording could not be saved (" + problem + ")" + where);
    if (live.empty()) remove_live_pointer(path);
    return;
  }
  if (!path.empty()) remove_live_pointer(path);
  segment_->unlink();
  write_home(live, "");
  if (path.empty() || !unnamed_) return;
  if (!is_kept) {
    remove_run_folder(run_);
  } else {
    const std::scoped_lock lock(mutex_);
    say("recorded in " + run_ + "; headrace report " + run_ + " shows it");
  }
} catch (...) {
  // No memory for names: what can be read stays where it is.
}

int Session::operator_id(const OperatorSpec& spec) {
  const std::scoped_lock lock(mutex_);
  return registry_.operator_id(spec);
}

int Session::queue_id(const QueueSpec& spec) {
  const std::scoped_lock lock(mutex_);
  return registry_.queue_id(spec);
}

void Session::close_queue(int queue) noexcept {
  if (queue < 0) return;
  // Its last level lasts until now; closed it stands still.
  metrics::QueueProbe last = queue_probe(queue);
  const std::int64_t now = metrics::Clock::now_ns();
  last.changed(0, now);
  registry_.leave_levels(segment_->queues()[queue].cell, now);
  segment_->queues()[queue].life.store(life_of(RecordLife::closed), std::memory_order_release);
}

int Session::loader_id(std::string_view name, int source_operator, std::uint64_t identity) {
  const std::scoped_lock lock(mutex_);
  const int id = registry_.loader_id(name, source_operator, identity);
  if (id >= 0) loaders_.fetch_add(1);
  return id;
}

void Session::close_loader(int loader) noexcept {
  if (loader < 0) return;
  segment_->loaders()[loader].life.store(life_of(RecordLife::closed), std::memory_order_release);
}

int Session::annotation_id(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  return registry_.annotation_id(name);
}

metrics::QueueProbe Session::queue_probe(int queue) noexcept {
  if (queue < 0) return {};
  metrics::QueueCell& cell = segment_->queues()[queue].cell;
  const metrics::HistoryStore history = segment_->history();
  return {&cell, segment_->bins() + cell.first_bin.load(), clock(),
          history.level_history(history.at(cell.track.load() - 1))};
}

void Session::keep_sink_history(metrics::SinkProbe& probe, int loader) noexcept {
  if (loader < 0) return;
  const std::scoped_lock lock(mutex_);
  probe.keep_history(registry_.range_history(metrics::TrackKind::get_next, loader),
                     registry_.range_history(metrics::TrackKind::batches, loader));
}

metrics::SinkCell* Session::sink(int loader) noexcept {
  return loader < 0 ? nullptr : &segment_->loaders()[loader].sink;
}

LoaderRecord* Session::loader_record(int loader) noexcept {
  return loader < 0 ? nullptr : &segment_->loaders()[loader];
}

metrics::WorkerCell* Session::claim_worker(std::int64_t now) {
  const std::scoped_lock lock(mutex_);
  if (owner() && registry_.is_crowded()) registry_.fold_finished_workers();
  return registry_.claim_worker(now);
}

metrics::OperatorCell* Session::claim_cell(const metrics::WorkerCell& worker, int operator_id,
                                           metrics::Place place, bool is_loop) {
  const std::scoped_lock lock(mutex_);
  return registry_.claim_cell(worker, operator_id, place, is_loop);
}

void Session::loop_began(std::int64_t now) noexcept {
  const std::scoped_lock lock(mutex_);
  active_loops_.fetch_add(1);
  // The clock follows the process that trains: a loop inside one of its workers is not a step of the training
  // loop.
  if (owner()) segment_->header().loop_clock.resume(now);
}

void Session::loop_ended(std::int64_t now) noexcept {
  const std::scoped_lock lock(mutex_);
  if (active_loops_.fetch_sub(1) == 1 && owner()) segment_->header().loop_clock.pause(now);
}

template <class Counts>
int Session::count_busy(Counts&& counts) const noexcept {
  return static_cast<int>(std::ranges::count_if(segment_->known_workers(), [&](const auto& worker) {
    return is_live(worker) && is_busy(worker) && counts(worker);
  }));
}

int Session::busy_workers() const noexcept {
  return count_busy([](const metrics::WorkerCell&) { return true; });
}

int Session::busy_threads_here() const noexcept {
  return count_busy(
      [pid = current_pid()](const metrics::WorkerCell& worker) { return worker.pid.load() == pid; });
}

// Walks up from the queues that the sink takes from. A busy worker whose own input is empty works on what it
// has while the rest of the awaited batch is still further up, so the walk goes on; the last busy one is the
// answer. Workers without queues (an executor's threads) feed the sink through a channel that nobody records:
// any busy one.
int Session::in_service(int loader) const noexcept {
  Segment& segment = *segment_;
  if (loader >= 0 &&
      segment.loaders()[loader].has_own_graph.load() == static_cast<std::uint32_t>(LoaderGraph::stages)) {
    return in_service_by_stages(loader);
  }
  const std::span<const metrics::WorkerCell> workers = segment.known_workers();
  if (workers.size() <= 1) return kNobody;
  static_assert(kMaxQueues <= 64, "a set of queues is the bits of one word");
  const auto inputs_of = [](const metrics::WorkerCell& worker) {
    std::uint64_t inputs = 0;
    for (const metrics::WorkerEdge& edge : worker.edges) {
      const std::uint32_t queue = edge.queue.load();
      if (queue == 0 || queue > kMaxQueues) break;
      if (edge.is_put.load() == 0) inputs |= std::uint64_t{1} << (queue - 1);
    }
    return inputs;
  };
  const auto puts_to_any = [](const metrics::WorkerCell& worker, std::uint64_t queues) {
    for (const metrics::WorkerEdge& edge : worker.edges) {
      const std::uint32_t queue = edge.queue.load();
      if (queue == 0 || queue > kMaxQueues) return false;
      if (edge.is_put.load() != 0 && (queues >> (queue - 1) & 1) != 0) return true;
    }
    return false;
  };
  const auto all_empty = [&](std::uint64_t queues) {
    for (; queues != 0; queues &= queues - 1) {
      if (segment.queues()[std::countr_zero(queues)].cell.occupancy.level.load() > 0) return false;
    }
    return true;
  };
  const auto operator_of = [&](const metrics::WorkerCell& worker) {
    const std::uint32_t account = worker.account.load();
    if (account < metrics::kOperatorAccount) return kNobody;
    return static_cast<int>(
        segment.cells()[(account - metrics::kOperatorAccount) % kMaxCells].operator_id.load());
  };

  std::uint64_t queues = 0;
  int unconnected = kNobody;
  for (const metrics::WorkerCell& worker : workers) {
    if (!is_live(worker)) continue;
    if (worker.is_sink.load() != 0) {
      queues |= inputs_of(worker);
    } else if (worker.edges[0].queue.load() == 0 && worker.loader.load() == 0 && is_busy(worker)) {
      unconnected = operator_of(worker);
    }
  }
  if (queues == 0) return unconnected;
  int candidate = kNobody;
  std::uint64_t visited = 0;
  while ((queues & ~visited) != 0) {
    visited |= queues;
    bool busy = false;
    std::uint64_t behind_busy = 0;
    std::uint64_t behind_waiting = 0;
    for (const metrics::WorkerCell& worker : workers) {
      if (!is_live(worker) || worker.is_sink.load() != 0 || !puts_to_any(worker, queues)) continue;
      if (is_busy(worker)) {
        candidate = operator_of(worker);
        behind_busy |= inputs_of(worker);
        busy = true;
      } else {
        behind_waiting |= inputs_of(worker);
      }
    }
    if (busy && (behind_busy == 0 || !all_empty(behind_busy))) return candidate;
    queues = busy ? behind_busy : behind_waiting;
  }
  return candidate != kNobody ? candidate : unconnected;
}

// A walk over the stages of a loader's model, last one first: a busy stage whose input holds items is
// what the sink waits for; one with an empty input works on what it has while the rest is further up.
int Session::in_service_by_stages(int loader) const noexcept {
  Segment& segment = *segment_;
  constexpr std::size_t kMaxStages = 64;
  std::array<int, kMaxStages> busy;
  busy.fill(kNobody);
  for (const metrics::WorkerCell& worker : segment.known_workers()) {
    const std::uint32_t account = worker.account.load();
    if (!is_live(worker) || account < metrics::kOperatorAccount) continue;
    const std::uint32_t op =
        segment.cells()[(account - metrics::kOperatorAccount) % kMaxCells].operator_id.load() % kMaxOperators;
    const OperatorRecord& record = segment.operators()[op];
    const std::uint32_t stage = record.stage.load() / kPlacesPerStage;
    if (static_cast<int>(record.loader.load()) == loader + 1 && stage < kMaxStages)
      busy[stage] = static_cast<int>(op);
  }
  std::uint64_t has_input = 0;
  for (const QueueRecord& queue : segment.known_queues()) {
    const std::uint32_t to = queue.to.load();
    if (static_cast<int>(queue.loader.load()) == loader + 1 && to > 0 && to <= kMaxStages &&
        queue.cell.occupancy.level.load() > 0) {
      has_input |= std::uint64_t{1} << (to - 1);
    }
  }
  int candidate = kNobody;
  for (std::size_t stage = kMaxStages; stage-- > 0;) {
    if (busy[stage] == kNobody) continue;
    candidate = busy[stage];
    if ((has_input >> stage & 1) != 0) break;
  }
  return candidate;
}

void Session::keep_alive() noexcept {
  const std::int64_t now = metrics::Clock::now_ns();
  const std::span<metrics::WorkerCell> workers = segment_->known_workers();
  {
    // Workers of other processes that are gone: nothing else makes room for their successors.
    const std::scoped_lock lock(mutex_);
    if (owner() && registry_.is_crowded()) registry_.fold_finished_workers();
  }
  int last_pid = 0;
  bool last_alive = false;
  for (metrics::WorkerCell& worker : workers) {
    if (!is_live(worker)) continue;
    const int pid = worker.pid.load();
    if (pid != last_pid) {
      last_pid = pid;
      last_alive = pid == current_pid() || process_alive(pid, worker.process_start.load());
    }
    if (last_alive) worker.last_alive_ns.store(now);
  }
  if (owner()) registry_.leave_tracks_of_gone_writers();
  segment_->header().anchors.add_now();
}

}  // namespace headrace::profile
