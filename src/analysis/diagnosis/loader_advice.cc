#include "headrace/analysis/diagnosis/loader_advice.h"

#include <algorithm>
#include <utility>

#include "headrace/analysis/diagnosis/advice.h"
#include "headrace/analysis/words.h"

namespace headrace::analysis {
namespace {

/// More batches than this wait in memory for nothing.
constexpr int kMostPrefetch = 64;
/// Of what the longest prefetch gains; the rest costs twice the memory each time.
constexpr double kMostOfTheGain = 0.85;
/// As much as before, as far as a run can tell.
constexpr double kAsMuch = 1.03;

Advice change_of(const std::string& parameter, const std::string& from, const std::string& to,
                 std::string text) {
  Advice advice;
  advice.parameter = parameter;
  advice.from = from;
  advice.to = to;
  advice.text = std::move(text);
  return advice;
}

/// A number that is not known says nothing against the change; one that is must gain.
std::optional<Advice> if_worth_it(Advice advice, double step_s, const Prediction& prediction) {
  if (!worth_it(step_s, prediction)) return std::nullopt;
  return with_prediction(std::move(advice), step_s, prediction);
}

}  // namespace

std::optional<Advice> advise_prefetch(const profile::Profile& profile, const Loader& loader,
                                      const Predictor& predictor) {
  if (loader.num_workers < 1 || loader.prefetch_factor >= kMostPrefetch) return std::nullopt;
  const double step_s = profile.sink.step_s;
  const auto predicted = [&](int to) {
    return predictor.predict(profile, {{Change::Kind::kPrefetchFactor, 0, to, 1}});
  };
  const int longest = std::min(kMostPrefetch, 16 * loader.prefetch_factor);
  const double gain_s = step_s - predicted(longest).step_s;
  int to = 2 * loader.prefetch_factor;
  while (to < longest && step_s - predicted(to).step_s < kMostOfTheGain * gain_s) to *= 2;
  to = std::min(to, longest);
  Advice advice = change_of("prefetch_factor", as_written(loader.prefetch_factor), as_written(to),
                            "keep up to " + as_written(static_cast<double>(to) * loader.num_workers) +
                                " batches ready (" + as_written(to) + " per worker)");
  advice.changes = {{Change::Kind::kPrefetchFactor, 0, to, 1}};
  return if_worth_it(std::move(advice), step_s, predicted(to));
}

std::optional<Advice> advise_any_order(const profile::Profile& profile, const Loader& loader,
                                       const Predictor& predictor) {
  if (loader.num_workers < 2 || !loader.in_order) return std::nullopt;
  return if_worth_it(
      change_of("in_order", "True", "False",
                "deliver batches as they are ready; their order is then no longer the sampler's"),
      profile.sink.step_s, predictor.predict(profile, {{Change::Kind::kInOrder, 0, 0, 1}}));
}

std::optional<Advice> advise_no_workers(const profile::Profile& profile, const Loader& loader,
                                        const Predictor& predictor) {
  if (loader.num_workers < 1 || loader.in_workers.empty()) return std::nullopt;
  if (work_per_batch_s(profile, loader) >= profile.sink.step_s - profile.sink.compute_s) return std::nullopt;
  return if_worth_it(
      change_of("num_workers", as_written(loader.num_workers), "0",
                "load in the training loop itself: making a batch takes " +
                    duration(work_per_batch_s(profile, loader)) + ", less than handing it over"),
      profile.sink.step_s,
      predictor.predict(profile, {{Change::Kind::kWorkers, loader.in_workers.front(), 0, 1}}));
}

std::optional<Advice> advise_fewer_workers(const profile::Profile& profile, const Loader& loader,
                                           const Predictor& predictor) {
  const int cores = profile.host.cores;
  if (cores < 1 || loader.num_workers <= cores || loader.in_workers.empty()) return std::nullopt;
  const auto predicted = [&](int to) {
    return predictor.predict(profile, {{Change::Kind::kWorkers, loader.in_workers.front(), to, 1}});
  };
  const Prediction now = predicted(loader.num_workers);
  const Prediction then = predicted(cores);
  if (!now.known || !then.known || then.step_s > kAsMuch * now.step_s) return std::nullopt;
  return with_prediction(
      change_of("num_workers", as_written(loader.num_workers), as_written(cores),
                counted(cores, "worker") + " would do as much on " + counted(cores, "core") + " as " +
                    as_written(loader.num_workers) + ", with less memory"),
      profile.sink.step_s, then);
}

std::string workers_sentence(const Loader& loader, int to) {
  std::string text = "load in " + counted(to, "worker") + " instead of " + as_written(loader.num_workers);
  if (loader.stream) {
    text +=
        "; the dataset is a stream and must give each worker its own part (get_worker_info()), or every "
        "worker "
        "reads all of it";
  }
  return text;
}

}  // namespace headrace::analysis
