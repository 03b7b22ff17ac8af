// Predictions that are asked for again: the advice and the picture of "the step with other values" simulate the same
// changes.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "headrace/analysis/simulate/predictor.h"

namespace headrace::analysis {

/// Keeps the answers of `predictor`, so that each is simulated once. Thread-safe; one simulation runs at a time.
class CachedPredictor : public Predictor {
 public:
  explicit CachedPredictor(std::unique_ptr<Predictor> predictor)
      : Predictor(predictor->profile()), predictor_(std::move(predictor)) {}

  Prediction predict(const std::vector<Change>& changes) const override;

 private:
  std::unique_ptr<Predictor> predictor_;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<std::vector<Change>, Prediction>> known_;
};

}  // namespace headrace::analysis
