// Events in virtual time, and cores that everybody who computes shares evenly. Knows nothing of loaders or
// queues: those bring the rules.
//
//     Engine engine(2);              // cores
//     engine.compute(0, 0.010);      // actor 0 needs 10 ms of CPU,
//     engine.compute(1, 0.010);      // so do 1
//     engine.compute(2, 0.010);      // and 2: together they take 15 ms
//     int who = engine.next();       // 0, 1 or 2, at engine.now() == 0.0162: CPU work is slower beside CPU
//                                    // work (beside_others.h)
#pragma once

#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace headrace::analysis {

/// Each actor has one thing under way at most. Deterministic: ties go to the smaller actor.
///
/// Processor sharing in O(log n) per event: all who compute get the same rate, so the CPU time that each of
/// them has had since the beginning is one number, and who is done first is who has the smallest target in
/// it. CPU time is that of an otherwise idle machine. Those who need the interpreter lock share what one of
/// the others gets: one of them runs at a time.
class Engine {
 public:
  explicit Engine(double cores) : cores_(cores) {}

  double now() const noexcept { return now_; }
  /// Time that cores were busy, all of them together.
  double computed_s() const noexcept { return computed_s_; }
  /// Time for which somebody computed under the lock.
  double locked_s() const noexcept { return locked_s_; }

  /// `actor` goes on after that long, on no core.
  void sleep(int actor, double seconds) { sleeping_.emplace(now_ + seconds, actor); }
  /// `actor` goes on once it has had that much CPU time.
  void compute(int actor, double cpu_s) { free_.done.emplace(free_.each_had_s + cpu_s, actor); }
  /// The same, holding the interpreter lock.
  void compute_locked(int actor, double cpu_s) { lock_.done.emplace(lock_.each_had_s + cpu_s, actor); }

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

  int next_done();

  using Due = std::pair<double, int>;
  using Heap = std::priority_queue<Due, std::vector<Due>, std::greater<>>;

  /// Who computes at one rate, by the CPU time after which each is done.
  struct Sharing {
    Heap done;
    double each_had_s = 0;

    double left_s() const;
  };

  double cores_;
  double now_ = 0;
  double computed_s_ = 0;
  double locked_s_ = 0;
  int pool_left_ = 0;  ///< threads of the pool that compute
  int awaits_pool_ = kNobody;
  Heap sleeping_;
  Sharing free_;
  Sharing lock_;
};

}  // namespace headrace::analysis
