#include "headrace/profile/thread_context.h"

#include <atomic>

#include "headrace/profile/worker_pauses.h"

namespace headrace::profile {
namespace {

std::atomic<std::uint64_t> next_thread_uid{1};
thread_local bool thread_ended = false;

}  // namespace

ThreadContext::ThreadContext() : uid_(next_thread_uid.fetch_add(1)) {}

ThreadContext::~ThreadContext() {
  release();
  local_ = nullptr;
  thread_ended = true;
}

ThreadContext& ThreadContext::make_local() noexcept {
  // On the heap: a loaded library gets only a few hundred bytes of the thread's static block.
  thread_local std::unique_ptr<ThreadContext> context;
  // Something may still record when the thread's objects are being destroyed: it gets a context that stays
  // behind.
  if (thread_ended) return *new ThreadContext;
  context.reset(new ThreadContext);
  return *context;
}

void ThreadContext::release() noexcept {
  // After a fork the cells belong to the parent's thread, which continues to write them.
  if (probe.bound() && pid_ == current_pid()) {
    has_data_again();
    probe.finish(metrics::Clock::now_ns());
  }
  probe = metrics::WorkerProbe();
  cells_.fill({});
  forget_cells();
  session_.reset();
}

void ThreadContext::rebind() noexcept {
  const std::uint64_t generation = CurrentSession::generation();
  const std::shared_ptr<Session> session = CurrentSession::get();
  // Opening a session at first use changed the generation once more.
  generation_ = session == nullptr ? generation : CurrentSession::generation();
  if (session == session_ && pid_ == current_pid()) return;
  release();
  if (pid_ != current_pid()) {
    // The parent's loops go on in the parent: here they are neither run nor left.
    loops_.clear();
    get_next_depth = 0;
  }
  pid_ = current_pid();
  if (session == nullptr) return;
  const std::int64_t now = metrics::Clock::now_ns();
  metrics::WorkerCell* worker = session->claim_worker(now);
  if (worker == nullptr) return;
  session_ = session;
  probe.bind(worker, session->segment().cells(), session->clock(), now);
  probe.keep_history(session->segment().history());
}

void ThreadContext::drop_gone() noexcept {
  std::erase_if(loops_, [this](const auto& loop) {
    const bool gone = loop->gone.load();
    if (gone && loop->waits && get_next_depth > 0) --get_next_depth;
    return gone;
  });
}

metrics::OperatorCell* ThreadContext::cell(int operator_id, bool is_loop) noexcept {
  if (operator_id < 0 || session_ == nullptr) return nullptr;
  const metrics::Place where = is_loop ? metrics::Place::worker : place();
  KnownCell& known = cells_[static_cast<std::size_t>(operator_id) * 3 + static_cast<std::size_t>(where)];
  if (known.cell == nullptr) {
    if (known.refused) return nullptr;
    known.cell = session_->claim_cell(*probe.cell(), operator_id, where, is_loop);
    known.refused = known.cell == nullptr;
    if (known.refused) return nullptr;
  }
  // The loader of an operator inside a loop may change from call to call; the mask is a plain
  // store.
  if (where != metrics::Place::worker && !running_loops().empty())
    running_loops().back()->probe.ran(operator_id);
  return known.cell;
}

}  // namespace headrace::profile
