#include "headrace/profile/sampler.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "headrace/profile/host_sampler.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/rank_neighbours.h"

namespace headrace::profile {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kIdleTick = std::chrono::milliseconds(250);
constexpr std::int64_t kKeepAliveNs = 1'000'000'000;
constexpr std::int64_t kCopyNs = 5'000'000'000;
constexpr std::int64_t kContendedNs = 1'000'000;

struct Served {
  explicit Served(const std::shared_ptr<Session>& session)
      : weak(session), host(std::make_unique<HostSampler>(session->segment())) {}
  std::weak_ptr<Session> weak;
  std::unique_ptr<HostSampler> host;
  RankNeighbours neighbours;
  std::int64_t kept_alive_ns = 0;
  std::int64_t copied_ns = metrics::Clock::now_ns();
};

}  // namespace

struct Sampler::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::unique_ptr<Served>> served;
  std::thread thread;
  bool stopping = false;
  int pid = 0;
  std::atomic<LockProbe> lock_probe{nullptr};

  void run();
  void tick(Served& served, Session& session);
  void probe_lock(Session& session, const HostSampler& host);
};

Sampler& Sampler::instance() {
  static Sampler& sampler = *new Sampler;
  return sampler;
}

Sampler::Sampler() : state_(new State) {}

void Sampler::set_lock_probe(LockProbe probe) noexcept { state_->lock_probe.store(probe); }

bool Sampler::add(const std::shared_ptr<Session>& session) {
  if (state_->pid != 0 && state_->pid != current_pid()) {
    // A forked child that opens a run of its own: the parent's thread does not exist here, its state is left
    // behind.
    LockProbe probe = state_->lock_probe.load();
    state_ = new State;
    state_->lock_probe.store(probe);
  }
  const std::scoped_lock lock(state_->mutex);
  state_->pid = current_pid();
  state_->served.push_back(std::make_unique<Served>(session));
  state_->stopping = false;
  if (state_->thread.joinable()) {
    state_->wake.notify_all();
    return true;
  }
  // Signals belong to the user's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    state_->thread = std::thread([state = state_] {
      pthread_setname_np(pthread_self(), "headrace");
      state->run();
    });
  } catch (const std::system_error&) {
    started = false;  // a limit on processes or memory
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void Sampler::stop() noexcept {
  if (state_->pid != current_pid()) return;
  std::thread thread;
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
    thread = std::move(state_->thread);
    state_->wake.notify_all();
  }
  if (thread.joinable()) thread.join();
}

void Sampler::State::run() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    bool looping = false;
    // The list may grow while a session is served; new ones are met at the next tick.
    for (std::size_t i = 0; i < served.size() && !stopping;) {
      const auto session = served[i]->weak.lock();
      if (session == nullptr) {
        served.erase(served.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      Served& one = *served[i];
      looping |= session->loop_running();
      lock.unlock();
      tick(one, *session);
      lock.lock();
      ++i;
    }
    wake.wait_for(lock, looping ? kTick : kIdleTick);
  }
}

void Sampler::State::tick(Served& one, Session& session) {
  const std::int64_t now = metrics::Clock::now_ns();
  one.host->sample(now);
  if (session.loop_running()) probe_lock(session, *one.host);
  if (now - one.kept_alive_ns >= kKeepAliveNs) {
    one.kept_alive_ns = now;
    session.keep_alive();
    if (const auto others = one.neighbours.cpu_ns(session.run(), session.live_path(), now)) {
      one.host->set_other_ranks_cpu(*others);
    }
  }
  if (now - one.copied_ns >= kCopyNs) {
    one.copied_ns = now;
    if (session.loop_running()) session.copy_out();
  }
}

void Sampler::State::probe_lock(Session& session, const HostSampler& host) {
  const LockProbe probe = lock_probe.load();
  // Asking forces the holder to hand the lock over once, so ask only where the answer matters.
  if (probe == nullptr || host.process_cores() < 0.6 || session.busy_threads_here() == 0) return;
  const std::int64_t waited = probe();
  if (waited < 0) return;
  metrics::HostCell& cell = session.segment().host();
  cell.gil_probes.bump(1);
  if (waited >= kContendedNs) cell.gil_contended.bump(1);
}

}  // namespace headrace::profile
