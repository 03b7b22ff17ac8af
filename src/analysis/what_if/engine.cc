#include "headrace/analysis/what_if/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "headrace/analysis/what_if/beside_others.h"

namespace headrace::analysis {
namespace {

/// Each is an event of every step, and a step has time for all of its work beside so many.
constexpr double kMostInPool = 16;

}  // namespace

double Engine::Sharing::left_s() const {
  return done.empty() ? std::numeric_limits<double>::infinity()
                      : std::max(0.0, done.top().first - each_had_s);
}

void Engine::compute_in_pool(double cpu_s) {
  const int threads = static_cast<int>(std::clamp(std::ceil(cores_), 1.0, kMostInPool));
  for (int i = 0; i < threads; ++i) compute(kPool, cpu_s / threads);
  pool_left_ += threads;
}

int Engine::next() {
  for (;;) {
    const int actor = next_done();
    if (actor != kPool) return actor;
    if (--pool_left_ == 0 && awaits_pool_ != kNobody) return std::exchange(awaits_pool_, kNobody);
  }
}

int Engine::next_done() {
  if (sleeping_.empty() && free_.done.empty() && lock_.done.empty()) return kNobody;
  const double holders = static_cast<double>(lock_.done.size());
  const double runnable = static_cast<double>(free_.done.size()) + (holders > 0 ? 1 : 0);
  const double busy = std::min(runnable, cores_);
  const double pace = 1 / slowdown(cores_ > 1 ? (busy - 1) / (cores_ - 1) : 0);
  const double rate = runnable > 0 ? busy / runnable * pace : 0;
  const double locked_rate = holders > 0 ? rate / holders : 0;

  const double sleeps_s = sleeping_.empty() ? std::numeric_limits<double>::infinity()
                                            : std::max(0.0, sleeping_.top().first - now_);
  const double free_s = free_.done.empty() ? free_.left_s() : free_.left_s() / rate;
  const double locked_s = lock_.done.empty() ? lock_.left_s() : lock_.left_s() / locked_rate;
  const double elapsed_s = std::min({sleeps_s, free_s, locked_s});
  Heap& from = sleeps_s <= elapsed_s ? sleeping_ : free_s <= elapsed_s ? free_.done : lock_.done;
  const int actor = from.top().second;
  from.pop();

  now_ += elapsed_s;
  free_.each_had_s += elapsed_s * rate;
  lock_.each_had_s += elapsed_s * locked_rate;
  computed_s_ += elapsed_s * busy;
  if (holders > 0) locked_s_ += elapsed_s * busy / runnable;
  return actor;
}

}  // namespace headrace::analysis
