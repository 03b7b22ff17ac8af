#include "headrace/analysis/what_if/engine.h"

#include <algorithm>
#include <limits>

#include "headrace/analysis/what_if/beside_others.h"

namespace headrace::analysis {

double Engine::Sharing::left_s() const {
  return done.empty() ? std::numeric_limits<double>::infinity()
                      : std::max(0.0, done.top().first - each_had_s);
}

int Engine::next() {
  if (sleeping_.empty() && free_.done.empty() && lock_.done.empty()) return -1;
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
