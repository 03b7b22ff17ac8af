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

/// Places for whole batches that a change of a pipeline's queue adds; 0 for queues of smaller items, whose
/// size was never recorded.
double more_places(const profile::Profile& profile, const Change& change) {
  if (change.kind == Change::Kind::kPrefetch) return change.to;
  if (change.kind != Change::Kind::kCapacity || change.index < 0 ||
      static_cast<std::size_t>(change.index) >= profile.queues.size()) {
    return 0;
  }
  const profile::QueueProfile& queue = profile.queues[static_cast<std::size_t>(change.index)];
  return queue.to_sink ? change.to - static_cast<double>(queue.capacity) : 0;
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

std::optional<Advice> advise_copying_ahead(const profile::Profile& profile, double lost_s, double step_s) {
  const profile::LoaderParameter* ahead = parameter_of(profile, profile::Quantity::copies_ahead);
  if (ahead == nullptr || ahead->value != profile::ParameterValue(false)) return std::nullopt;
  Advice advice;
  advice.parameter = ahead->name;
  advice.from = false;
  advice.to = true;
  advice.text = "copy batches to the device while the step runs; that saves at most " + duration(lost_s) +
                " of " + duration(step_s) +
                ", and how much of it is unknown, because no file tells how long copying takes";
  return advice;
}

std::optional<double> device_gap_s(const profile::Profile& profile, const GateThresholds& thresholds) {
  if (!profile.device || !profile.device->steps) return std::nullopt;
  const profile::DeviceSteps& steps = *profile.device->steps;
  const double step_s = steps.iteration_gap_s + steps.forward_backward_s + steps.tail_s;
  const double gap_s = steps.iteration_gap_s - profile.sink.starved_share * profile.sink.step_s;
  if (step_s <= 0 || gap_s < thresholds.served_share * step_s) return std::nullopt;
  return gap_s;
}

std::optional<double> more_memory(const profile::Profile& profile, const std::vector<Change>& changes) {
  if (!profile.sink.batch_bytes) return std::nullopt;
  double places = 0;
  if (const std::optional<Loader> loader = loader_of(profile)) {
    double workers = loader->workers;
    double each = loader->per_worker;
    for (const Change& change : changes) {
      if (change.kind == Change::Kind::kWorkers) workers = change.to;
      if (change.kind == Change::Kind::kWindow) each = change.to;
    }
    places = workers * each - loader->window();
  } else {
    for (const Change& change : changes) places += more_places(profile, change);
  }
  if (places == 0) return std::nullopt;
  return places * static_cast<double>(*profile.sink.batch_bytes);
}

}  // namespace headrace::analysis
