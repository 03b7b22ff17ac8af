#include "headrace/profile/probes.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <span>
#include <string_view>

#include "headrace/profile/function_shares.h"
#include "headrace/profile/loader_model.h"
#include "headrace/profile/process_identity.h"
#include "profile/record_life.h"

namespace headrace::profile {

using metrics::Clock;
using metrics::WorkerState;

// --- operator ---

OperatorHandle::OperatorHandle(std::string name, std::string kind, std::uint64_t key, std::uint32_t flags,
                               std::string parameter, int loader, std::uint32_t stage)
    : name_(std::move(name)),
      kind_(std::move(kind)),
      key_(key),
      flags_(flags),
      parameter_(std::move(parameter)),
      loader_(loader),
      stage_(stage) {}

void OperatorHandle::declare(std::vector<std::shared_ptr<QueueHandle>> inputs,
                             std::vector<std::shared_ptr<QueueHandle>> outputs) {
  inputs_ = std::move(inputs);
  outputs_ = std::move(outputs);
}

int OperatorHandle::id_in(Session& session) noexcept { return id_in(session, loader_); }

void OperatorHandle::feeds(const Session& session, int loader) noexcept {
  fed_session_ = session.uid();
  fed_loader_ = loader;
}

int OperatorHandle::registered_id(Session& session, int loader) noexcept try {
  OperatorSpec spec{name_, kind_, key_, flags_, parameter_, {}, {}, loader, stage_};
  if (session.uid() == fed_session_) spec.feeds = fed_loader_;
  for (const auto& queue : inputs_) spec.inputs.push_back(queue->id_in(session));
  for (const auto& queue : outputs_) spec.outputs.push_back(queue->id_in(session));
  std::erase(spec.inputs, -1);
  std::erase(spec.outputs, -1);
  const int id = session.operator_id(spec);
  cached_.store(place_of(session, loader) << 16 | static_cast<std::uint64_t>(id + 1),
                std::memory_order_relaxed);
  return id;
} catch (...) {
  return -1;
}

metrics::OperatorCell* OperatorHandle::cell_in(ThreadContext& context) noexcept {
  int loader = loader_;
  if ((flags_ & kOfTheLoop) != 0 && !context.running_loops().empty())
    loader = context.running_loops().back()->loader;
  return context.cell(id_in(*context.session(), loader));
}

bool OperatorHandle::begin(std::int64_t label) noexcept {
  ThreadContext* context = ThreadContext::recording();
  if (context == nullptr) return false;
  metrics::OperatorCell* cell = context->remembered(number_);
  if (cell == nullptr) {
    cell = cell_in(*context);
    if (cell == nullptr) return false;
    context->remember(number_, cell);
  }
  context->probe.enter(*cell, Clock::now_ns(), label);
  return true;
}

void OperatorHandle::end(bool failed) noexcept {
  // The thread is the same; its probe has nothing open if the session has changed meanwhile. Both are
  // fine.
  if (metrics::WorkerProbe* probe = ThreadContext::local().open_probe())
    probe->leave(Clock::now_ns(), failed);
}

void OperatorHandle::abandon() noexcept {
  if (metrics::WorkerProbe* probe = ThreadContext::local().open_probe()) probe->abandon(Clock::now_ns());
}

void OperatorHandle::transferred(const metrics::TransferRecord& record) noexcept {
  ThreadContext* context = ThreadContext::recording();
  if (context == nullptr) return;
  if (metrics::OperatorCell* cell = cell_in(*context))
    context->probe.transferred(*cell, record, Clock::now_ns());
}

void OperatorHandle::sampled_functions(std::string_view lines) noexcept {
  ThreadContext* context = ThreadContext::recording();
  const int id = context == nullptr ? -1 : id_in(*context->session());
  if (id >= 0) store_functions(context->session()->segment().operators()[id], lines);
}

// --- queue ---

QueueHandle::QueueHandle(std::string name, std::int64_t capacity, int loader, bool is_fifo)
    : name_(std::move(name)), capacity_(capacity), loader_(loader), is_fifo_(is_fifo) {}

QueueHandle::QueueHandle(std::string name, std::int64_t capacity, int loader, StageEdge edge)
    : name_(std::move(name)), capacity_(capacity), loader_(loader), edge_(edge) {}

QueueHandle::~QueueHandle() {
  if (pid_ != current_pid()) return;
  if (const auto session = session_.lock()) session->close_queue(id_.load());
}

int QueueHandle::id_in(Session& session) noexcept try {
  const std::scoped_lock lock(mutex_);
  if (session_uid_ == session.uid() && pid_ == current_pid()) return id_.load();
  if (const auto old = session_.lock(); old != nullptr && pid_ == current_pid()) old->close_queue(id_.load());
  session_ = session.weak_from_this();
  session_uid_ = session.uid();
  pid_ = current_pid();
  QueueSpec spec{.name = name_, .capacity = capacity_, .loader = loader_};
  if (edge_) spec.role = QueueRole::between;
  if (edge_) spec.edge = *edge_;
  id_.store(session.queue_id(spec));
  return id_.load();
} catch (...) {
  return -1;
}

void QueueHandle::join_session(Session& session) noexcept {
  probe_id_ = id_in(session);
  probe_ = session.queue_probe(probe_id_);
  probe_session_ = session.uid();
  probe_pid_ = current_pid();
}

bool QueueHandle::taken_by_this_thread() const noexcept {
  const ThreadContext& context = ThreadContext::local();
  const int id = id_.load(std::memory_order_relaxed);
  return id >= 0 && context.probe.bound() && context.probe.gets_from(static_cast<std::uint32_t>(id));
}

bool QueueHandle::wants_loop_name() const noexcept {
  if (edge_) return false;
  ThreadContext* context = ThreadContext::recording();
  return context != nullptr && context->probe.loop_cell() == nullptr &&
         context->place() == metrics::Place::worker;
}

void QueueHandle::waiting(WorkerState state) noexcept {
  if (edge_) return;
  ThreadContext* context = ThreadContext::recording();
  if (context != nullptr) context->probe.block(state, Clock::now_ns());
}

void QueueHandle::waited() noexcept {
  if (edge_) return;
  if (metrics::WorkerProbe* probe = ThreadContext::local().open_probe()) probe->unblock(Clock::now_ns());
}

bool QueueHandle::begin() noexcept {
  const ThreadContext* context = ThreadContext::recording();
  if (context != nullptr) follow_session(*context->session());
  return context != nullptr;
}

void QueueHandle::sampled(std::int64_t level, std::int64_t at_ns) noexcept {
  if (begin()) probe_.sampled(level, at_ns);
}

void QueueHandle::emptied() noexcept {
  if (probe_id_ < 0 || probe_pid_ != current_pid()) return;
  const std::scoped_lock lock(mutex_);
  // The probe writes into the segment of the session that it was made for.
  const std::shared_ptr<Session> session = session_.lock();
  if (session != nullptr && session->uid() == probe_session_) probe_.changed(0, Clock::now_ns());
  ages_ = {};
}

OperatorHandle QueueHandle::loop_of(const char* name, bool puts) const {
  // Threads that run the same function at different places of the graph are different operators.
  const std::uint64_t place_key = std::hash<std::string_view>()(name_) * 2 + (puts ? 1 : 0);
  return {name, puts ? "source" : "map", place_key, kIsWorkerLoop};
}

void QueueHandle::sampled_functions(const char* loop_name, bool puts, std::string_view lines) noexcept {
  loop_of(loop_name, puts).sampled_functions(lines);
}

void QueueHandle::transferred(bool is_put, std::int64_t level, std::int64_t waited_ns, bool counts,
                              const char* loop_name, std::int64_t age_ns) noexcept {
  ThreadContext* context = ThreadContext::recording();
  if (context == nullptr) return;
  follow_session(*context->session());
  const int id = probe_id_;
  const std::int64_t now = Clock::now_ns();
  probe_.changed(level, now);
  if (is_put) {
    if (is_fifo_) ages_.put(level, now);
    probe_.put(waited_ns, now, counts);
  } else {
    const std::int64_t seen_ns = is_fifo_ ? ages_.take(now) : -1;
    probe_.get(waited_ns, now, counts, age_ns >= 0 ? age_ns : seen_ns);
  }
  // Whose item it is, the stages say: the thread may be an event loop that serves all of them.
  if (id < 0 || edge_) return;
  metrics::WorkerProbe& worker = context->probe;
  const bool back = is_put && worker.gets_from(static_cast<std::uint32_t>(id));
  worker.edge(static_cast<std::uint32_t>(id), is_put, counts && !back);
  const metrics::Place place = context->place();
  if (place == metrics::Place::get_next && !is_put && !context->running_loops().empty()) {
    context->running_loops().back()->probe.took_from(id);
  }
  if (place != metrics::Place::worker || back) return;
  // Between queue calls a thread is busy in a loop of its own, an operator named after the loop's function.
  if (worker.loop_cell() == nullptr && loop_name != nullptr) {
    OperatorHandle loop = loop_of(loop_name, is_put);
    worker.rest_in(context->cell(loop.id_in(*context->session()), true), WorkerState::idle, now);
  }
  const bool producer = worker.puts_somewhere();
  if (is_put || !producer) worker.loop_item(now, counts, is_put);
}

// --- loader ---

LoaderHandle::LoaderHandle(std::shared_ptr<Session> session, const std::string& name,
                           std::shared_ptr<OperatorHandle> source, std::uint64_t identity)
    : session_(std::move(session)), source_(std::move(source)), pid_(current_pid()) {
  const int source_id = source_ == nullptr ? -1 : source_->id_in(*session_);
  id_ = session_->loader_id(name, source_id, identity);
  if (source_ != nullptr) source_->feeds(*session_, id_);
}

void note_fact(LoaderRecord& record, std::string_view key, std::string_view value) noexcept {
  std::array<char, LoaderRecord::kFactsBytes> text = record.facts;
  const auto end = std::find(text.begin(), text.end() - 1, '\0');
  const std::string_view known(text.data(), static_cast<std::size_t>(end - text.begin()));
  const auto is_line = [](char c) { return c == '\n' || c == '='; };
  if (std::any_of(key.begin(), key.end(), is_line) || value.find('\n') != std::string_view::npos) return;
  for (std::size_t at = 0; at < known.size(); at = known.find('\n', at) + 1) {
    const std::string_view line = known.substr(at);
    if (line.starts_with(key) && line.substr(key.size()).starts_with('=')) return;
    if (known.find('\n', at) == std::string_view::npos) break;
  }
  if (known.size() + key.size() + value.size() + 3 > text.size()) return;
  auto at = std::copy(key.begin(), key.end(), end);
  *at++ = '=';
  at = std::copy(value.begin(), value.end(), at);
  *at = '\n';
  store_words(record.facts.data(), text.data(), text.size());
}

LoaderHandle::~LoaderHandle() {
  // A forked child drops its copy of the handle; the parent's loader goes on.
  if (pid_ == current_pid()) session_->close_loader(id_);
}

std::string LoaderHandle::name() const {
  return id_ < 0 ? "" : std::string(session_->segment().loaders()[id_].name.view());
}

std::vector<LoaderHandle::EpochStart> LoaderHandle::epoch_starts() const {
  const std::scoped_lock lock(mutex_);
  return {epochs_.begin(), epochs_.end()};
}

void LoaderHandle::describe(const std::string& model, std::uint32_t workers) noexcept try {
  LoaderRecord* record = session_->loader_record(id_);
  if (record == nullptr || pid_ != current_pid()) return;
  std::array<char, LoaderRecord::kModelBytes> text{};
  // Half a document is none: without its model the loader shows operators and queues, and gets no advice.
  if (model.size() < text.size()) std::copy(model.begin(), model.end(), text.begin());
  store_words(record->model.data(), text.data(), text.size());
  record->workers.store(workers);
  const std::optional<LoaderModel> read = loader_model_from_json(text.data());
  const bool by_stages = read && window_of(*read) == nullptr;
  record->has_own_graph.store(
      static_cast<std::uint32_t>(by_stages ? LoaderGraph::stages : LoaderGraph::window));
} catch (...) {
  // No memory to read the model: the loader shows what its threads tell.
}

void LoaderHandle::put_in_front(std::uint32_t stages) noexcept {
  if (id_ < 0 || pid_ != current_pid()) return;
  Segment& segment = session_->segment();
  const auto given_out = segment.header().high_water[static_cast<std::size_t>(Section::operators)].load(
      std::memory_order_relaxed);
  for (OperatorRecord& record : std::span(segment.operators(), given_out)) {
    if (is_live(record.life.load(std::memory_order_acquire)) &&
        record.loader.load() == static_cast<std::uint32_t>(id_) + 1)
      record.stage.bump(stages * kPlacesPerStage);
  }
}

bool LoaderHandle::wants_handoff_sample() const noexcept {
  constexpr std::int64_t kMaxSamples = 2;
  const LoaderRecord* record = session_->loader_record(id_);
  return record != nullptr && record->workers.load() == 0 &&
         record->handoff.pickle_cpu_reads.load() < kMaxSamples;
}

void LoaderHandle::sampled_handoff(const HandoffSample& sample, std::string_view batch_type) noexcept {
  LoaderRecord* record = session_->loader_record(id_);
  if (record == nullptr || pid_ != current_pid()) return;
  metrics::HandoffCell& cell = record->handoff;
  // Counted also where it failed: it would fail again.
  cell.pickle_cpu_reads.bump(1);
  if (sample.pickle_cpu_ns < 0) {
    note_fact(*record, "handoff", "unknown");
    return;
  }
  cell.counted.bump(1);
  cell.message_bytes.bump(sample.message_bytes);
  cell.tensors.bump(sample.tensors);
  cell.pickle_cpu_ns.bump(sample.pickle_cpu_ns);
  if (!batch_type.empty()) note_fact(*record, "batch", batch_type);
}

void note_device(std::string_view device) noexcept {
  ThreadContext* context = ThreadContext::recording();
  if (context == nullptr || context->running_loops().empty()) return;
  LoaderRecord* record = context->session()->loader_record(context->running_loops().back()->loader);
  if (record == nullptr || record->has_own_graph.load() == 0) return;
  note_fact(*record, "device", device);
}

void LoaderHandle::note(std::string_view key, std::string_view value) noexcept {
  LoaderRecord* record = session_->loader_record(id_);
  if (record != nullptr && pid_ == current_pid()) note_fact(*record, key, value);
}

void LoaderHandle::miss(std::uint32_t gap) noexcept {
  LoaderRecord* record = session_->loader_record(id_);
  if (record != nullptr) record->gaps.set_bits(gap);
}

void LoaderHandle::mark_epoch() noexcept try {
  constexpr std::size_t kKept = 4;
  const metrics::SinkCell* sink = session_->sink(id_);
  if (sink == nullptr) return;
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<SegmentImage> image;
  // Before the first loop of the run there is nothing that a report would have to leave out.
  if (session_->clock()->read(metrics::Clock::now_ns()).begun) {
    // The oldest image makes room for the new one: mapping and touching new memory takes ten times as long.
    if (epochs_.size() == kKept && epochs_.front().image.use_count() == 1)
      image = std::move(epochs_.front().image);
    if (image == nullptr) image = std::make_shared<SegmentImage>();
    image->read_memory(session_->segment().data(), session_->segment().size());
  }
  epochs_.push_back({sink->epochs.load() + 1, std::move(image)});
  if (epochs_.size() > kKept) epochs_.pop_front();
} catch (...) {
  // No memory for a copy: the report of this epoch alone is then not available, the whole one is.
}

// --- loop ---

LoopRecorder::LoopRecorder(std::shared_ptr<LoaderHandle> loader, bool followed)
    : loader_(std::move(loader)),
      running_(std::make_shared<RunningLoop>()),
      pid_(current_pid()),
      followed_(followed) {
  running_->loader = loader_->id();
  CurrentSession::set(loader_->session());
  loader_->mark_epoch();
  ThreadContext* context = follow_thread();
  if (context == nullptr) return;
  started_ = true;
  running_->probe.begin_epoch(Clock::now_ns());
}

LoopRecorder::~LoopRecorder() { end_loop(); }

bool LoopRecorder::on_its_thread() const noexcept {
  const ThreadContext& local = ThreadContext::local();
  return context_ == &local && context_uid_ == local.uid();
}

// The iterator may move to another thread between calls, or the current session may have changed: the sink's
// own cell stays, the worker's probe is the calling thread's.
ThreadContext* LoopRecorder::follow_to(ThreadContext& thread) noexcept {
  leave_thread();
  ThreadContext* context = context_ = &thread;
  context_uid_ = context->uid();
  context_session_ = context->session()->uid();
  context->forget_cells();
  context->running_loops().push_back(running_);
  metrics::WorkerCell* worker = context->probe.cell();
  worker->is_sink.store(1);
  metrics::OperatorCell* source = nullptr;
  if (loader_->source() != nullptr) {
    ++context->get_next_depth;
    source = context->cell(loader_->source()->id_in(*context->session()));
    --context->get_next_depth;
  }
  Session& owner = *loader_->session();
  if (context->session() == &owner && owner.sink(loader_->id()) != nullptr) {
    const auto index = static_cast<std::uint32_t>(worker - owner.segment().workers());
    owner.sink(loader_->id())->worker.store(1 + index);
  }
  const LoaderRecord* record = owner.loader_record(loader_->id());
  const bool followed =
      followed_ ||
      (record != nullptr && record->has_own_graph.load() == static_cast<std::uint32_t>(LoaderGraph::window));
  running_->probe.bind(owner.sink(loader_->id()), &context->probe, source, owner.clock(), &owner, followed,
                       loader_->id());
  owner.keep_sink_history(running_->probe, loader_->id());
  if (source != nullptr) running_->probe.ran(loader_->source()->id_in(*context->session()));
  return context;
}

void LoopRecorder::leave_thread() noexcept {
  // Only the thread itself may touch its list; another one drops this loop when it looks next.
  if (context_ == nullptr || !on_its_thread()) return;
  std::erase(context_->running_loops(), running_);
  context_ = nullptr;
}

// An exception ended the loop for all that was known; the caller asks for the next batch all the same.
void LoopRecorder::resume() noexcept {
  failed_ = false;
  if (pid_ != current_pid()) return;
  running_ = std::make_shared<RunningLoop>();
  running_->loader = loader_->id();
  ended_ = false;
  waits_told_ns_ = 0;
  context_ = nullptr;
  context_uid_ = 0;
  if (follow_thread() == nullptr) return;
  running_->probe.resume(Clock::now_ns());
}

void LoopRecorder::begin_wait() noexcept {
  if (started_ && failed_) resume();
  if (!started_ || ended_) return;
  ThreadContext* context = follow_thread();
  if (context == nullptr) return;
  device_.step_ends(running_->probe);
  ++context->get_next_depth;
  running_->waits = true;
  loader_->set_in_next({static_cast<std::uint64_t>(pthread_self()), !running_->probe.steady()});
  wait_began_ns_ = Clock::now_ns();
  running_->probe.begin_wait(wait_began_ns_);
}

void LoopRecorder::end_wait(bool delivered, bool failed, int ready) noexcept {
  finish_wait(delivered, failed, ready, nullptr);
}

void LoopRecorder::end_wait(bool delivered, bool failed, const metrics::WaitCharges& charges) noexcept {
  finish_wait(delivered, failed, charges.ready ? 1 : 0, &charges);
}

void LoopRecorder::finish_wait(bool delivered, bool failed, int ready,
                               const metrics::WaitCharges* charges) noexcept {
  if (!started_ || ended_ || pid_ != current_pid() || !on_its_thread()) return;
  if (context_->get_next_depth > 0) --context_->get_next_depth;
  running_->waits = false;
  loader_->set_in_next({});
  const std::int64_t now = Clock::now_ns();
  if (context_->running_loops().size() > 1) tell_others_waited(now - wait_began_ns_);
  if (charges != nullptr) {
    running_->probe.end_wait(now, delivered, failed, *charges);
  } else {
    running_->probe.end_wait(now, delivered, failed, ready);
  }
  if (delivered) {
    device_.step_begins(running_->probe, now);
  } else {
    end_loop();
  }
  failed_ = failed;
}

bool LoopRecorder::asks_for_size() noexcept {
  ++delivered_;
  return (delivered_ & (delivered_ - 1)) == 0 && started_ && !ended_ && pid_ == current_pid();
}

bool LoopRecorder::is_looked_into() noexcept {
  constexpr std::uint64_t kOfEach = 32;
  if (!started_ || ended_ || pid_ != current_pid()) return false;
  const std::uint64_t taken = running_->probe.steps();
  const std::uint64_t apart = std::max<std::uint64_t>(1, std::bit_floor(taken / kOfEach));
  contents_at_ = taken - taken % apart + apart;
  return taken % apart == 0;
}

void LoopRecorder::tell_size(std::uint64_t bytes) noexcept {
  LoaderRecord* record = loader_->session()->loader_record(loader_->id());
  if (record != nullptr) record->batch_bytes.store(std::max(record->batch_bytes.load(), bytes));
}

// A step of an enclosing or interleaved loop does not compute while this one fetches its batch. Apart, so
// that waits of loops that stand alone cost no instruction for it.
[[gnu::noinline]] void LoopRecorder::tell_others_waited(std::int64_t wait_ns) noexcept {
  for (const auto& other : context_->running_loops()) {
    if (other == running_) continue;
    other->probe.exclude(wait_ns);
    if (other->waits && waits_told_ns_ == 0) loader_->note("inside", std::to_string(other->loader));
  }
  waits_told_ns_ += wait_ns;
}

void LoopRecorder::end_loop() noexcept {
  if (ended_ || !started_) return;
  ended_ = true;
  running_->gone.store(true);
  if (pid_ != current_pid()) return;
  const std::int64_t now = Clock::now_ns();
  if (!on_its_thread()) {
    running_->probe.forget_worker();
    running_->probe.end_loop(now);
    return;
  }
  // A loop that ran within one step of another (validation inside training) was not that step's compute
  // either.
  const std::int64_t began = running_->probe.loop_started_ns();
  for (const auto& other : context_->running_loops()) {
    const std::int64_t delivered = other->probe.last_delivery_ns();
    if (other != running_ && delivered > 0 && delivered <= began) {
      other->probe.exclude_loop(std::max<std::int64_t>(0, now - began - waits_told_ns_));
    }
  }
  running_->probe.end_loop(now);
  leave_thread();
}

}  // namespace headrace::profile
