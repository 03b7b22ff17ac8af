// What a change to a DataLoader would buy: the recorded run is simulated with it, and without.
//
//     worker i: index queue (FIFO, filled round-robin) -> make -> its sending thread
//     training loop: receive -> (wait for the older one) -> draw the next indices -> yield -> step
//
// At most prefetch_factor x num_workers batches are on their way, counted until they are yielded. All CPU
// work shares the cores. Receiving is serial and costs the training loop its CPU time, never its wall time
// (which is mostly the worker's interpreter lock); with pinning, one thread more receives in its place.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/analysis/diagnosis/predictor.h"
#include "headrace/analysis/what_if/loader_model.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// What a simulated run was like once it had settled. Shares are of its time.
struct SimulatedRun {
  double step_s = 0;
  double wait_share = 0;
  double serve_share = 0;   ///< of the training loop: receiving and drawing
  double worker_share = 0;  ///< workers busy, of all of them
  double pin_share = 0;
  double cpu_share = 0;  ///< of the cores
};

/// `batches` steps after as many as the loader needs to settle; they begin at batch `first` of the record.
SimulatedRun simulate(const LoaderModel& model, int batches, std::uint64_t first);

/// The interval is what repeated runs differ by, plus the model's own measured error: +-10 % where the
/// workers fit the cores and nobody else uses them, +-15 % beyond; wider where the run as recorded is not
/// reproduced. Abstains above 20 % foreign load, where the recorded run is off by more than a factor of 1.6,
/// and for changes that a DataLoader does not have. Deterministic; one prediction takes 1 ms or so.
class LoaderSimulator final : public Predictor {
 public:
  Prediction predict(const profile::Profile& profile, const std::vector<Change>& changes) const override;

 private:
  /// The same run is asked about many changes: how well it is reproduced is found once.
  struct Reproduced {
    std::string figures;  ///< of the profile it is about
    double measured_over_simulated = 1;
  };
  double reproduce(const profile::Profile& profile, const Loader& loader) const;

  mutable std::mutex mutex_;
  mutable Reproduced reproduced_;
};

/// Whether enough of a loader was recorded to simulate it.
bool can_simulate(const profile::Profile& profile);

}  // namespace headrace::analysis
