#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "headrace/analysis/diagnosis/predictor.h"

namespace headrace::analysis {

/// Predictions do not depend on the thresholds: each is made once.
class Remembering final : public Predictor {
 public:
  explicit Remembering(const profile::Profile& profile)
      : Predictor(profile), simulator_(predictor_for(profile)) {}

  Prediction predict(const std::vector<Change>& changes) const override {
    std::vector<std::tuple<Change::Kind, int, int, double>> key;
    for (const Change& each : changes) key.emplace_back(each.kind, each.index, each.to, each.factor);
    const auto [known, is_new] = known_.try_emplace(std::move(key));
    if (is_new) known->second = simulator_->predict(changes);
    return known->second;
  }

 private:
  std::unique_ptr<Predictor> simulator_;
  mutable std::map<std::vector<std::tuple<Change::Kind, int, int, double>>, Prediction> known_;
};

}  // namespace headrace::analysis
