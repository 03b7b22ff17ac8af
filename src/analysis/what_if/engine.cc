#include "headrace/analysis/what_if/engine.h"

#include <algorithm>

namespace headrace::analysis {

int Engine::next() {
  if (sleeping_.empty() && computing_.empty()) return -1;
  const double count = static_cast<double>(computing_.size());
  const double rate = count > 0 ? std::min(1.0, cores_ / count) : 0;
  const double left_s = count > 0 ? std::max(0.0, computing_.top().first - each_had_s_) : 0;
  const bool sleeper =
      computing_.empty() || (!sleeping_.empty() && sleeping_.top().first - now_ <= left_s / rate);
  Heap& from = sleeper ? sleeping_ : computing_;
  const double elapsed_s = std::max(0.0, sleeper ? from.top().first - now_ : left_s / rate);
  const int actor = from.top().second;
  from.pop();
  now_ += elapsed_s;
  each_had_s_ += elapsed_s * rate;
  computed_s_ += elapsed_s * rate * count;
  return actor;
}

}  // namespace headrace::analysis
