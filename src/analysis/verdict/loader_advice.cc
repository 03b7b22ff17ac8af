#include "headrace/analysis/verdict/loader_advice.h"

#include <algorithm>
#include <utility>

#include "../read/numbers.h"
#include "headrace/analysis/verdict/advice.h"
#include "headrace/analysis/words.h"
#include "search.h"

namespace headrace::analysis {
namespace {

using profile::Quantity;

Advice change_of(const profile::LoaderParameter& parameter, ParameterValue to, std::string text) {
  Advice advice;
  advice.parameter = parameter.name;
  advice.from = parameter.value;
  advice.to = std::move(to);
  advice.text = std::move(text);
  return advice;
}

/// A number that is not known says nothing against the change; one that is must gain.
std::optional<Advice> if_worth_it(Advice advice, double step_s, const Prediction& prediction) {
  if (!worth_it(step_s, prediction)) return std::nullopt;
  return with_prediction(std::move(advice), step_s, prediction);
}

}  // namespace

std::optional<Advice> advise_prefetch(const Loader& loader, const Predictor& predictor) {
  const profile::Profile& profile = predictor.profile();
  const profile::LoaderParameter* window = loader.parameter(Quantity::window);
  if (window == nullptr || loader.workers < 1 || loader.per_worker >= kMaxBuffered) return std::nullopt;
  const auto with = [](int to) { return std::vector<Change>{{Change::Kind::kWindow, 0, to, 1}}; };
  const int longest = std::min(kMaxBuffered, 16 * loader.per_worker);
  const std::optional<Choice> enough = cheapest(predictor, doubled(2 * loader.per_worker, longest), with);
  const int to = enough ? enough->value : 2 * loader.per_worker;
  Advice advice = change_of(*window, to,
                            "keep up to " + as_written(static_cast<double>(to) * loader.workers) +
                                " batches ready (" + as_written(to) + " per worker)");
  advice.changes = with(to);
  return if_worth_it(std::move(advice), profile.sink.step_s, enough ? enough->then : Prediction{});
}

std::optional<Advice> advise_any_order(const Loader& loader, const Predictor& predictor) {
  const profile::LoaderParameter* order = loader.parameter(Quantity::order);
  if (order == nullptr || loader.workers < 2 || !loader.ordered) return std::nullopt;
  return if_worth_it(
      change_of(*order, false,
                "deliver batches as they are ready; their order is then no longer the sampler's"),
      predictor.profile().sink.step_s, predictor.predict({{Change::Kind::kOrder, 0, 0, 1}}));
}

std::optional<Advice> advise_fewer_workers(const Loader& loader, const Predictor& predictor) {
  const profile::Profile& profile = predictor.profile();
  const profile::LoaderParameter* workers = loader.parameter(Quantity::workers);
  if (workers == nullptr || loader.workers < 1 || loader.in_workers.empty()) return std::nullopt;
  const auto with = [&](int to) {
    return std::vector<Change>{{Change::Kind::kWorkers, loader.in_workers.front(), to, 1}};
  };
  const double step_s = profile.sink.step_s;
  const double work_s = work_per_batch_s(profile, loader);
  const bool cheap = work_s < step_s - profile.sink.compute_s;
  const std::optional<Choice> fewest = cheapest(predictor, numbers(0, loader.workers), with);
  // Without a number, only what was measured speaks for it: making a batch takes less than waiting for it.
  if (fewest ? fewest->value == loader.workers : !cheap) return std::nullopt;
  const int to = fewest ? fewest->value : 0;
  const std::string instead = " instead of " + as_written(loader.workers);
  std::string text = "load in " + counted(to, "worker") + instead +
                     ": batches are made in time, and each worker takes time on the cores";
  if (to == 0) {
    text = "load in the training loop itself: making a batch takes " + duration(work_s) +
           (cheap ? ", less than handing it over" : ", and the workers take cores from the training step");
  }
  Advice advice = change_of(*workers, to, std::move(text));
  advice.changes = with(to);
  return if_worth_it(std::move(advice), step_s, fewest ? fewest->then : Prediction{});
}

std::optional<Advice> advise_workers_as_cores(const Loader& loader, const Predictor& predictor) {
  const profile::Profile& profile = predictor.profile();
  const int cores = profile.host.cores;
  const profile::LoaderParameter* workers = loader.parameter(Quantity::workers);
  if (workers == nullptr || cores < 1 || loader.workers <= cores || loader.in_workers.empty())
    return std::nullopt;
  const std::optional<Choice> found = cheapest(predictor, {cores, loader.workers}, [&](int to) {
    return std::vector<Change>{{Change::Kind::kWorkers, loader.in_workers.front(), to, 1}};
  });
  if (!found || found->value != cores) return std::nullopt;
  // It saves memory, not time: there is no step to predict.
  return change_of(*workers, cores,
                   counted(cores, "worker") + " would do as much on " + counted(cores, "core") + " as " +
                       as_written(loader.workers) + ", with less memory");
}

std::string where_to_set(const profile::LoaderModel& model, const std::string& parameter) {
  const profile::LoaderParameter* found = profile::parameter_named(model, parameter);
  return found == nullptr ? "" : found->set_in;
}

std::string workers_sentence(const Loader& loader, int to) {
  std::string text = "load in " + counted(to, "worker") + " instead of " +
                     (loader.workers > 0 ? as_written(loader.workers) : "in the training loop");
  if (loader.stream && !loader.shard_advice.empty()) text += "; " + loader.shard_advice;
  return text;
}

}  // namespace headrace::analysis
