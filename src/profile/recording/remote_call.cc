#include "headrace/profile/remote_call.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "headrace/profile/current.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/thread_context.h"
#include "profile/record_life.h"

namespace headrace::profile {
namespace {

using metrics::Clock;
using metrics::RemoteCell;
using metrics::RemoteFlights;

using Phase = metrics::OpenTime RemoteFlights::Process::*;

/// When the calling thread's last request ended. Only of clients that end a request in the thread that began it.
thread_local std::int64_t last_ended_ns = 0;
thread_local const void* last_begun = nullptr;

bool process_gone(int pid) noexcept { return kill(pid, 0) != 0 && errno == ESRCH; }

RemoteFlights::Process* flights_of(RemoteFlights& flights, int pid) noexcept {
  for (RemoteFlights::Process& process : flights.processes) {
    const int its = process.pid.load(std::memory_order_relaxed);
    if (its == pid) return &process;
    if (its == 0) break;  // they are given out in order, and stay
  }
  for (RemoteFlights::Process& process : flights.processes) {
    int its = process.pid.load(std::memory_order_relaxed);
    if (its != 0 && !process_gone(its)) continue;
    if (!process.pid.compare_exchange_strong(its, pid, std::memory_order_relaxed)) continue;
    process.waiting.reset();
    process.transferring.reset();
    return &process;
  }
  return nullptr;
}

/// Since the run opened: short enough for OpenTime.
std::int64_t now_us(Segment& segment) noexcept {
  return (Clock::now_ns() - segment.header().opened_ns) / 1000;
}

double open_us(const RemoteFlights& flights, Phase phase, std::int64_t now) noexcept {
  double sum = 0;
  for (const RemoteFlights::Process& process : flights.processes) {
    if (process.pid.load(std::memory_order_relaxed) == 0) break;
    sum += (process.*phase).read(now).open_us;
  }
  return sum;
}

std::uint32_t owner_of_account(Segment& segment, std::uint32_t account) noexcept {
  const std::uint32_t cell = account - metrics::kOperatorAccount;
  return cell < kMaxCells ? 1 + segment.cells()[cell].operator_id.load() : RemoteCell::kOfNoOperator;
}

/// The operator that another thread of this process is in; the training step's are of no use to a loader.
std::uint32_t owner_by_other_threads(Segment& segment) noexcept {
  const int pid = current_pid();
  for (const metrics::WorkerCell& worker : segment.known_workers()) {
    if (worker.pid.load() != pid || !is_live(worker)) continue;
    const std::uint32_t account = worker.account.load();
    if (account < metrics::kOperatorAccount || account >= metrics::kOperatorAccount + kMaxCells) continue;
    const metrics::OperatorCell& cell = segment.cells()[account - metrics::kOperatorAccount];
    if (cell.place.load() != static_cast<std::uint8_t>(metrics::Place::step))
      return 1 + cell.operator_id.load();
  }
  return RemoteCell::kOfNoOperator;
}

}  // namespace

std::uint32_t remote_owner() noexcept {
  const std::shared_ptr<Session> session = CurrentSession::peek();
  if (session == nullptr) return 0;
  ThreadContext& context = ThreadContext::local();
  const metrics::WorkerProbe* probe = context.open_probe();
  if (probe != nullptr && context.session() == session.get()) {
    const std::uint32_t account = probe->cell()->account.load();
    if (account >= metrics::kOperatorAccount) return owner_of_account(session->segment(), account);
    if (!context.running_loops().empty()) return RemoteCell::kOfNoOperator;  // the training step
  }
  return owner_by_other_threads(session->segment());
}

RemoteCall::RemoteCall(std::uint32_t owner, std::string_view target, bool is_retry, std::int64_t backoff_ns,
                       std::int64_t pause_ns) noexcept
    : target_hash_(hash_of(target)), owner_(owner) {
  target_hash_ ^= target_hash_ >> 29;
  request_.began_ns = Clock::now_ns();
  request_.is_retry = is_retry;
  request_.backoff_ns = backoff_ns;
  const std::shared_ptr<Session> session = owner == 0 ? nullptr : CurrentSession::peek();
  if (session == nullptr || session->remote_traffic() == nullptr) return;
  session_ = session;
  pid_ = current_pid();
  request_.pause_ns = pause_ns;
  if (pause_ns < 0 && last_ended_ns != 0) request_.pause_ns = request_.began_ns - last_ended_ns;
  last_ended_ns = 0;
  last_begun = this;
  flights_ = flights_of(session->segment().remote_traffic().flights, pid_);
  begin_phase(*session, &RemoteFlights::Process::waiting);
}

std::shared_ptr<Session> RemoteCall::open_session() noexcept {
  return pid_ != 0 && pid_ == current_pid() ? session_.lock() : nullptr;
}

void RemoteCall::begin_phase(Session& session, Phase phase) noexcept {
  if (flights_ == nullptr) return;
  phase_began_us_ = now_us(session.segment());
  open_us_at_begin_ = open_us(session.segment().remote_traffic().flights, phase, phase_began_us_);
  (flights_->*phase).begin(phase_began_us_);
}

double RemoteCall::end_phase(Session& session, Phase phase) noexcept {
  if (flights_ == nullptr) return 1;
  const std::int64_t now = now_us(session.segment());
  const double all_us = open_us(session.segment().remote_traffic().flights, phase, now) - open_us_at_begin_;
  (flights_->*phase).end(now);
  const auto lasted_us = static_cast<double>(std::max<std::int64_t>(1, now - phase_began_us_));
  return std::max(1.0, all_us / lasted_us);
}

void RemoteCall::answered(int status) noexcept {
  const std::shared_ptr<Session> session = open_session();
  if (session == nullptr || request_.first_byte_ns != 0) return;
  request_.first_byte_ns = Clock::now_ns();
  request_.status = status;
  request_.waiting = end_phase(*session, &RemoteFlights::Process::waiting);
  begin_phase(*session, &RemoteFlights::Process::transferring);
}

void RemoteCall::failed(std::int64_t bytes) noexcept {
  if (metrics::answer_of(request_.status) == metrics::RemoteAnswer::ok) request_.status = 0;
  ended(bytes);
}

void RemoteCall::ended(std::int64_t bytes) noexcept {
  const std::shared_ptr<Session> session = open_session();
  pid_ = 0;
  if (session == nullptr) return;
  request_.ended_ns = Clock::now_ns();
  request_.bytes = bytes;
  // A thread that had begun another one meanwhile (an event loop) does several at once: it has no pauses.
  if (last_begun == this) last_ended_ns = request_.ended_ns;
  if (request_.first_byte_ns == 0) {
    end_phase(*session, &RemoteFlights::Process::waiting);
  } else {
    request_.transferring = end_phase(*session, &RemoteFlights::Process::transferring);
  }
  if (metrics::answer_of(request_.status) == metrics::RemoteAnswer::ok)
    request_.is_repeated = session->segment().remote_traffic().seen.mark(target_hash_);
  const metrics::LoopClock::Reading clock = session->clock()->read(request_.ended_ns);
  if (RemoteCell* cell = session->remote_cell(owner_)) cell->add(request_, clock.begun && !clock.paused);
  session_.reset();
}

}  // namespace headrace::profile
