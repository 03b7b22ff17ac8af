// Events in virtual time, and cores that everybody who computes shares evenly. Knows nothing of loaders or
// queues: those bring the rules.
//
//     Engine engine(2);              // cores
//     engine.compute(0, 0.010);      // actor 0 needs 10 ms of CPU,
//     engine.compute(1, 0.010);      // so do 1
//     engine.compute(2, 0.010);      // and 2: together they take 15 ms
//     int who = engine.next();       // 0, 1 or 2, at engine.now() == 0.0162: CPU work is slower beside CPU
//                                    // work (cores.h)
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "headrace/analysis/model/work.h"

namespace headrace::analysis {

/// A thread that waits for CPython's lock asks its holder for it after that long (sys.getswitchinterval()).
inline constexpr double kSwitchInterval_s = 5e-3;

/// Each actor has one thing under way at most. Deterministic: ties go to the smaller actor.
///
/// Processor sharing in O(log n) per event: all who compute get the same rate, so the CPU time that each of
/// them has had since the beginning is one number, and who is done first is who has the smallest target in
/// it. CPU time is that of an otherwise idle machine.
///
/// The interpreter lock is as CPython keeps it: one thread holds it, the others queue in the order in which they came.
/// The holder gives it up when its part is done, or once somebody has waited for kSwitchInterval_s, and then queues
/// again. So a thread that needs the lock for a moment waits up to that long beside one that computes in Python.
class Engine {
 public:
  explicit Engine(double cores) : cores_(cores) {}

  double now() const noexcept { return now_; }
  /// Time that cores were busy, all of them together.
  double computed_s() const noexcept { return computed_s_; }
  /// Time for which somebody computed under the lock.
  double locked_s() const noexcept { return locked_s_; }
  /// Time for which `actor` has waited for the lock.
  double lock_wait_s(int actor) const noexcept;

  /// `actor` goes on after that long, on no core.
  void sleep(int actor, double seconds) { sleeping_.emplace(now_ + seconds, actor); }
  /// `actor` goes on once it has had that much CPU time.
  void compute(int actor, double cpu_s) { computing_.emplace(each_had_s_ + cpu_s, actor); }
  /// The same, holding the interpreter lock.
  void compute_locked(int actor, double cpu_s);

  /// Threads that are no actors use that much CPU time together, as many as there are cores: a library's pool.
  void compute_in_pool(double cpu_s);
  bool pool_computes() const noexcept { return pool_left_ > 0; }
  /// `actor` goes on once the pool has computed what it was given. One actor waits at most.
  void await_pool(int actor) noexcept { awaits_pool_ = actor; }

  /// Advances to the next actor that is done and returns it; below 0: nothing is under way.
  int next();

 private:
  /// Threads of the pool, among the actors.
  static constexpr int kPool = -2;
  static constexpr int kNobody = -1;

  using Due = std::pair<double, int>;
  using Heap = std::priority_queue<Due, std::vector<Due>, std::greater<>>;

  /// Part of an actor's work under the lock.
  struct Locked {
    int actor = kNobody;
    double cpu_s = 0;
    double since_s = 0;  ///< it waits for the lock, or holds it
  };

  /// Advances to the next event, and returns who is done: kNobody where only the lock changes hands.
  int advance();
  void take_lock(Locked part);
  void hand_lock_over();

  double cores_;
  double now_ = 0;
  double computed_s_ = 0;
  double locked_s_ = 0;
  int pool_left_ = 0;  ///< threads of the pool that compute
  int awaits_pool_ = kNobody;
  Heap sleeping_;
  Heap computing_;         ///< without the lock, by the CPU time after which each is done
  double each_had_s_ = 0;  ///< CPU time of everybody who computed since the beginning
  Locked holder_;          ///< its cpu_s counts from the beginning, as in computing_
  std::deque<Locked> lock_queue_;
  std::vector<double> lock_waits_s_;  ///< per actor
};

/// Off-CPU and CPU work alternate (item by item in truth): as one block each, they would overlap with others
/// in another way (measured: 18 % of error with half of both). So work of several kinds is done in turns.
class Task {
 public:
  /// turns: in how many of them work of several kinds is done. It needs the interpreter lock once in each.
  void set(const Work& work, int turns = kTurns) noexcept;
  /// Starts the next part; false where all is done.
  bool go_on(Engine& engine, int actor);

 private:
  enum class Part { kOff, kLocked, kCpu };

  Work turn_;
  int turns_ = 0;
  Part next_ = Part::kOff;
};

class DeviceQueue {
 public:
  /// `step_s`: how long the device works on a step; 0: the host does not run ahead of it.
  explicit DeviceQueue(double step_s) noexcept : step_s_(step_s) {}

  /// The host began a step at `began_s` and has put its work in at `now_s`: how long it must wait for room.
  double put(double began_s, double now_s) noexcept {
    free_s_ = std::max(free_s_, began_s) + step_s_;
    return step_s_ > 0 ? std::max(0.0, free_s_ - kStepsAhead * step_s_ - now_s) : 0;
  }

 private:
  /// How far the host runs ahead. CUDA's queue holds about 1,024 launches, one or two steps of a large model;
  /// the mean step does not depend on it.
  static constexpr double kStepsAhead = 2;

  double step_s_;
  double free_s_ = 0;
};

}  // namespace headrace::analysis
