#include "cycle_works.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "../read/numbers.h"
#include "headrace/analysis/read/demand.h"
#include "headrace/analysis/read/interpreter_lock.h"
#include "recorded_batches.h"

namespace headrace::analysis {
namespace {

constexpr std::size_t kMaxCycles = 4096;
constexpr std::size_t kComposedCycles = 512;
/// Share of a cycle: what takes less is as good as constant.
constexpr double kHardlyMatters = 0.01;
/// Share of its CPU time: even C code that releases the lock at once needs it for each call.
constexpr double kMinHeld = 0.01;

/// Locked share of CPU time for every user, if the lock's holder is unknown.
double held_of_cpu(const profile::Profile& profile, const InterpreterLock& lock) {
  if (lock.lock_share < 0) return lock.contended ? 1 : 0;
  if (lock.lock_share < kHardly && !lock.contended) return 0;  // found taken by chance
  double cpu_s = profile.sink.compute_cpu_s.value_or(0);
  for (const profile::OperatorProfile& op : profile.operators) {
    if (op.executor != profile::Executor::process) cpu_s += cpu_per_batch_s(op);
  }
  const double held_s = std::min(lock.lock_share, std::max(lock.process_cores, 0.0)) * profile.sink.step_s;
  return std::min(1.0, ratio(held_s, cpu_s));
}

/// Waiting for the lock is what a simulation adds by itself. of_cpu: see LockShares.
Work under_lock(const Work& work, double of_cpu, double waiters) {
  const double locked_s = of_cpu * work.cpu_s;
  const double waited_s = std::min(work.off_s, locked_s * waiters);
  return {work.off_s - waited_s, work.cpu_s - locked_s, locked_s};
}

}  // namespace

bool Effects::apply(const Change& change) {
  if (change.index < 0 || static_cast<std::size_t>(change.index) >= service.size()) return false;
  const std::size_t at = static_cast<std::size_t>(change.index);
  switch (change.kind) {
    case Change::Kind::kService:
      service[at] *= std::max(0.0, change.factor);
      return true;
    case Change::Kind::kAlike:
      alike[at] = true;
      return true;
    case Change::Kind::kUsual:
      usual[at] = true;
      return true;
    default:
      return false;
  }
}

LockShares no_lock(const profile::Profile& profile) {
  return {std::vector<double>(profile.operators.size(), 0), 0, 0};
}

LockShares lock_shares(const profile::Profile& profile) {
  const InterpreterLock lock = read_interpreter_lock(profile);
  const double usual = held_of_cpu(profile, lock);
  const auto share = [](double held_s, std::optional<double> cpu_s) {
    const double held = ratio(held_s, cpu_s.value_or(0));
    return held >= kMostOf ? 1 : std::max(kMinHeld, held);
  };
  LockShares use;
  if (lock.contended && lock.waiting < 0) use.waiters = std::max(0.0, lock.busy_threads - 1);
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const profile::OperatorProfile& op = profile.operators[i];
    const bool in_process = op.executor == profile::Executor::process;
    use.of_cpu.push_back(op.lock_held_s && !in_process ? share(*op.lock_held_s, op.cpu_s)
                         : lock.needed[i]              ? usual
                                                       : 0);
  }
  const profile::SinkProfile& sink = profile.sink;
  use.of_step_cpu = sink.compute_lock_held_s ? share(*sink.compute_lock_held_s, sink.compute_cpu_s) : usual;
  return use;
}

/// One operator's part in the cycles of its threads.
struct CycleWorks::Part {
  RecordedBatches works;
  double per_cycle = 1;    ///< items; few: it takes part in every so manieth
  double kept = 1;         ///< of its time: its inputs' left out
  double held_of_cpu = 0;  ///< the interpreter lock
  bool in_process = false;
};

CycleWorks::CycleWorks(const profile::Profile& profile, const Effects& effects, LockShares lock,
                       std::uint64_t seed)
    : profile_(profile),
      effects_(effects),
      lock_(std::move(lock)),
      demands_(own_demands(profile)),
      random_(seed) {}

std::vector<WorkSequence> CycleWorks::lanes(const std::vector<int>& operators, double cycles_per_batch,
                                            int most) {
  double all_s = 0;
  for (int i : operators) {
    const std::size_t at = static_cast<std::size_t>(i);
    all_s += std::max(0.0, demands_[at]) * profile_.operators[at].workers;
  }
  std::vector<Part> parts;
  std::size_t count = 1;
  std::size_t length = 0;
  bool composes = false;
  for (int i : operators) {
    const std::size_t at = static_cast<std::size_t>(i);
    const profile::OperatorProfile& op = profile_.operators[at];
    if (demands_[at] <= 0) continue;
    const double items = op.items_per_batch > 0 ? op.items_per_batch : 1;
    const double per_cycle = items / cycles_per_batch;
    // 31.6 items a batch are 32 that take a little less time each.
    const double whole = per_cycle > kNearlyAll ? std::max(1.0, std::round(per_cycle)) : per_cycle;
    Part part{RecordedBatches(op, profile_.host, std::max(1.0, whole), effects_.service[at]), per_cycle,
              ratio(demands_[at], op.demand_s) * (whole >= 1 ? per_cycle / whole : 1), lock_.of_cpu[at],
              effects_.in_process[at]};
    if (effects_.alike[at]) part.works.make_alike();
    if (effects_.usual[at]) part.works.make_usual();
    if (demands_[at] * op.workers < kHardlyMatters * all_s) part.works.use_mean();
    count = std::max(count, part.works.lanes());
    composes = composes || !part.works.whole();
    if (part.works.whole())
      length = std::max(length, static_cast<std::size_t>(static_cast<double>(part.works.length()) /
                                                         std::min(1.0, part.per_cycle)));
    parts.push_back(std::move(part));
  }
  count = std::min<std::size_t>(count, static_cast<std::size_t>(std::max(1, most)));
  if (composes) length = std::max(length, std::max<std::size_t>(8, kComposedCycles / count));
  length = std::clamp<std::size_t>(length, 1, std::max<std::size_t>(8, kMaxCycles / count));
  std::vector<WorkSequence> lanes(count, WorkSequence(length));
  for (std::size_t number = 0; number < length; ++number) {
    for (std::size_t lane = 0; lane < count; ++lane) {
      for (const Part& part : parts) lanes[lane][number] += in_cycle(part, lane, number);
    }
  }
  return lanes;
}

Work CycleWorks::in_cycle(const Part& part, std::size_t lane, std::size_t number) {
  std::size_t at = number;
  if (part.per_cycle < kNearlyAll) {
    const double before = std::floor(static_cast<double>(number) * part.per_cycle + 1e-9);
    const double after = std::floor(static_cast<double>(number + 1) * part.per_cycle + 1e-9);
    if (after <= before) return {};
    at = static_cast<std::size_t>(before);
  }
  return in_thread(part.works.batch(lane, at, random_) * part.kept, part.held_of_cpu, !part.in_process);
}

/// Work that no longer takes the lock does not wait for it: a process has a lock of its own.
Work CycleWorks::in_thread(const Work& work, double held_of_cpu, bool locks) const {
  const Work locked = under_lock(work, held_of_cpu, lock_.waiters);
  const bool shares = locks && !effects_.free_threaded;
  return shares ? locked : Work{locked.off_s, locked.cpu_s + locked.locked_s};
}

std::string CycleWorks::largest(const std::vector<int>& operators) const {
  double largest_s = -1;
  std::string name;
  for (int i : operators) {
    const std::size_t at = static_cast<std::size_t>(i);
    const double takes_s = demands_[at] * profile_.operators[at].workers * effects_.service[at];
    if (takes_s <= largest_s) continue;
    largest_s = takes_s;
    name = profile_.operators[at].name;
  }
  return name;
}

std::optional<double> CycleWorks::lock_wait_s(const std::vector<int>& operators) const {
  std::optional<double> waited_s;
  for (int i : operators) {
    const std::size_t at = static_cast<std::size_t>(i);
    const profile::OperatorProfile& op = profile_.operators[at];
    if (!op.lock_wait_s || demands_[at] <= 0) continue;
    waited_s = waited_s.value_or(0) + demands_[at] * op.workers * ratio(*op.lock_wait_s, op.busy_s);
  }
  return waited_s;
}

std::vector<Work> CycleWorks::steps(double own_s, const std::vector<int>& operators) const {
  double cpu_s = 0;
  double queued_s = 0;
  for (int i : operators) {
    const profile::OperatorProfile& op = profile_.operators[static_cast<std::size_t>(i)];
    const TimeSplit split = split_of(op, profile_.host);
    cpu_s += split.cpu_share * op.busy_s;
    queued_s += split.queue_share * op.busy_s;
  }
  const profile::SinkProfile& sink = profile_.sink;
  const double cpu_share = std::min(1.0, ratio(sink.compute_cpu_s.value_or(0), sink.compute_s));
  const double queue_share = std::min(1 - cpu_share, cpu_share * ratio(queued_s, cpu_s));
  std::vector<Work> steps;
  for (const Work& step : training_steps(sink, own_s, queue_share, profile_.host)) {
    steps.push_back(in_thread(step, lock_.of_step_cpu, true));
  }
  return steps;
}

}  // namespace headrace::analysis
