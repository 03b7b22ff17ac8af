#include "headrace/analysis/simulate/predictor.h"

#include <algorithm>

namespace headrace::analysis {
namespace {

bool equal(const std::vector<Change>& a, const std::vector<Change>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Change& x, const Change& y) {
    return x.kind == y.kind && x.index == y.index && x.to == y.to && x.factor == y.factor;
  });
}

}  // namespace

Prediction CachedPredictor::predict(const std::vector<Change>& changes) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, prediction] : known_) {
    if (equal(known, changes)) return prediction;
  }
  return known_.emplace_back(changes, predictor_->predict(changes)).second;
}

}  // namespace headrace::analysis
