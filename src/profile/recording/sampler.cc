#include "headrace/profile/sampler.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "headrace/profile/background_thread.h"
#include "headrace/profile/host_sampler.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/rank_neighbours.h"
#include "lock_watch.h"

namespace headrace::profile {
namespace {

/// Times between looks vary, so that they do not meet something periodic always at the same point.
constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kTickVaries = std::chrono::milliseconds(30);
constexpr auto kIdleTick = std::chrono::milliseconds(250);
constexpr auto kShortestLook = std::chrono::microseconds(5'000);
constexpr auto kLongestLook = std::chrono::microseconds(35'000);
/// A process that uses less has nobody who waits long for its interpreter lock. Its loop may wait for a core
/// where others have them all.
constexpr double kWatchedCores = 0.5;
constexpr std::int64_t kKeepAliveNs = 1'000'000'000;
constexpr std::int64_t kCopyNs = 5'000'000'000;
/// A copy into the run folder may take long, or for ever where a file system hangs. A fork does not wait
/// then.
constexpr auto kMaxForkWait = std::chrono::seconds(1);
constexpr std::int64_t kContendedNs = 1'000'000;

struct Served {
  explicit Served(const std::shared_ptr<Session>& session)
      : weak(session), host(std::make_unique<HostSampler>(session->segment())), lock(session->segment()) {}
  std::weak_ptr<Session> weak;
  std::unique_ptr<HostSampler> host;
  LockWatch lock;
  RankNeighbours neighbours;
  std::int64_t ticked_ns = 0;
  std::int64_t kept_alive_ns = 0;
  std::int64_t copied_ns = metrics::Clock::now_ns();
};

}  // namespace

struct Sampler::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::unique_ptr<Served>> served;
  BackgroundThread thread;
  bool running = false;  ///< false from the thread's last look on
  std::condition_variable ended;
  bool stopping = false;
  int forks = 0;  ///< under way in this process; the thread does not run meanwhile
  std::minstd_rand random{static_cast<std::minstd_rand::result_type>(current_pid())};
  int pid = 0;
  std::atomic<LockProbe> lock_probe{nullptr};
  std::atomic<LockFinder> lock_finder{nullptr};
  std::atomic<LockHolder> lock_holder{nullptr};
  std::uintptr_t lock_at = 0;
  int searches_left = 8;  ///< on a full machine the search may end before it has found the lock

  /// Starts the thread unless it runs, or may not. False if that fails. With the lock.
  /// `pauses`: it goes on after a fork, which another one often follows, so it begins with a pause.
  bool start(bool pauses);
  bool ends() const noexcept { return stopping || forks > 0; }
  void run(bool pauses);
  void pause(std::unique_lock<std::mutex>& lock, bool looping, bool watching);
  /// True while threads of the session are worth a look.
  bool watch_lock(Served& served, Session& session);
  void tick(Served& served, Session& session, std::int64_t now);
  void probe_lock(Session& session, const HostSampler& host);
};

Sampler& Sampler::instance() {
  static Sampler& sampler = *new Sampler;
  return sampler;
}

Sampler::Sampler() : state_(new State) {}

void Sampler::set_lock_probe(LockProbe probe) noexcept { state_->lock_probe.store(probe); }
void Sampler::set_lock_finder(LockFinder finder) noexcept { state_->lock_finder.store(finder); }
void Sampler::set_lock_holder(LockHolder holder) noexcept { state_->lock_holder.store(holder); }

bool Sampler::add(const std::shared_ptr<Session>& session) {
  if (state_->pid != 0 && state_->pid != current_pid()) {
    // A forked child that opens a run of its own: the parent's thread does not exist here, its state is left
    // behind.
    const State& parents = *state_;
    state_ = new State;
    state_->lock_probe.store(parents.lock_probe.load());
    state_->lock_finder.store(parents.lock_finder.load());
    state_->lock_holder.store(parents.lock_holder.load());
  }
  const std::scoped_lock lock(state_->mutex);
  state_->pid = current_pid();
  state_->served.push_back(std::make_unique<Served>(session));
  state_->stopping = false;
  state_->wake.notify_all();
  return state_->start(false);
}

bool Sampler::State::start(bool pauses) {
  if (running || ends()) return true;
  thread.join();  // one that has just ended
  running = thread.start("headrace", [this, pauses] { run(pauses); });
  return running;
}

void Sampler::stop() noexcept {
  if (state_->pid != current_pid()) return;
  BackgroundThread thread;
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
    thread = std::move(state_->thread);
    state_->wake.notify_all();
  }
  thread.join();
}

void Sampler::before_fork() noexcept {
  if (state_->pid != current_pid()) return;
  BackgroundThread thread;
  {
    std::unique_lock lock(state_->mutex);
    ++state_->forks;
    state_->wake.notify_all();
    // A thread that is late goes on as if nothing had been, once the fork is over.
    if (!state_->ended.wait_for(lock, kMaxForkWait, [this] { return !state_->running; })) return;
    thread = std::move(state_->thread);
  }
  thread.join();
}

void Sampler::after_fork_in_parent() noexcept {
  if (state_->pid != current_pid()) return;
  const std::scoped_lock lock(state_->mutex);
  if (state_->forks == 0) return;
  --state_->forks;
  if (state_->forks > 0 || state_->served.empty() || state_->start(true)) return;
  for (const auto& one : state_->served) {
    if (const auto session = one->weak.lock()) session->tell(kNoThread);
  }
}

void Sampler::State::run(bool pauses) {
  std::unique_lock lock(mutex);
  if (pauses) pause(lock, true, true);
  while (!ends()) {
    bool looping = false;
    bool watching = false;
    // The list may grow while a session is served; new ones are met at the next tick.
    for (std::size_t i = 0; i < served.size() && !ends();) {
      const auto session = served[i]->weak.lock();
      if (session == nullptr) {
        served.erase(served.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      Served& one = *served[i];
      looping |= session->loop_running();
      lock.unlock();
      constexpr std::int64_t kTickNs = std::chrono::nanoseconds(kTick - kTickVaries).count();
      const std::int64_t now = metrics::Clock::now_ns();
      // A thread that a fork has ended begins again in the middle of a tick.
      if (now - one.ticked_ns >= kTickNs && !metrics::Clock::is_virtual()) tick(one, *session, now);
      watching |= watch_lock(one, *session);
      lock.lock();
      ++i;
    }
    pause(lock, looping, watching);
  }
  running = false;
  ended.notify_all();
}

void Sampler::State::pause(std::unique_lock<std::mutex>& lock, bool looping, bool watching) {
  if (ends()) return;  // its notice came while no lock was held
  if (watching) {
    std::uniform_int_distribution<std::int64_t> varies(kShortestLook.count(), kLongestLook.count());
    wake.wait_for(lock, std::chrono::microseconds(varies(random)));
  } else {
    std::uniform_int_distribution<std::int64_t> varies(-kTickVaries.count(), kTickVaries.count());
    wake.wait_for(lock, looping ? kTick + std::chrono::milliseconds(varies(random)) : kIdleTick);
  }
}

bool Sampler::State::watch_lock(Served& one, Session& session) {
  const double cores = one.host->process_cores();
  if (!session.loop_running() || (cores < kWatchedCores && !one.host->cores_are_full())) return false;
  const LockFinder finder = lock_finder.load();
  if (lock_at == 0 && finder != nullptr && searches_left > 0) {
    --searches_left;
    lock_at = finder();
  }
  if (lock_at == 0) return false;
  const LockHolder holder = lock_holder.load();
  const std::optional<int> held_by = holder != nullptr ? holder() : std::nullopt;
  if (cores >= kWatchedCores) one.lock.look_at_operators(lock_at, held_by);
  one.lock.look_at_loops(lock_at, held_by);
  return true;
}

void Sampler::State::tick(Served& one, Session& session, std::int64_t now) {
  one.ticked_ns = now;
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
