// Gain of one change: the causes request it for their advice, the simulators of what_if predict it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "headrace/analysis/model/change.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Step now / predicted step from which on a change is a gain: less is within what runs differ by.
inline constexpr double kWorthIt = 1.05;

inline bool is_gain(double now_s, double then_s) noexcept { return kWorthIt * then_s <= now_s; }

struct Prediction {
  double step_s = 0;
  double low_s = 0;
  double high_s = 0;
  std::string limit;     ///< what sets the pace then: an operator's name, "sink", or "cpu"
  bool known = false;    ///< false: abstains
  std::string why_not;   ///< where it abstains, in plain words
  double yielded_s = 0;  ///< `step_s` if other processes gave way as far as the scheduler shares evenly
};

/// Made for one profile, which must outlive it.
class Predictor {
 public:
  explicit Predictor(const profile::Profile& profile) : profile_(profile) {}
  virtual ~Predictor() = default;
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  const profile::Profile& profile() const noexcept { return profile_; }
  /// All of `changes` made together. Thread-safe; never throws.
  virtual Prediction predict(const std::vector<Change>& changes) const = 0;

 private:
  const profile::Profile& profile_;
};

/// The simulator for the model of the recorded loader: batches made ahead in a window, or threads and queues.
std::unique_ptr<Predictor> predictor_for(const profile::Profile& profile);

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
