// How a framework's loader is built and set, as data. The adapter that knows the framework fills it; graph,
// diagnosis, advice, prediction and report read nothing else about it.
//
//     a window:  draws ─▶ [ batches in flight:  stage with workers ─▶ hands over ─▶ pins ] ─▶ loop
//     queues:    stage ─▶ queue ─▶ stage ─▶ queue ─▶ ... ─▶ queue ─▶ loop
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/profile/figure.h"

namespace headrace::profile {

/// A parameter's value in its own type: workers are an integer, order a bool, a way to start a text; monostate: none.
/// JSON and Python get the same types, so that `Loader(workers=advice.to)` works.
using ParameterValue = std::variant<std::monostate, bool, std::int64_t, std::string>;

/// As it is written in Python: "True", "4", "process"; "" if there is no value.
std::string as_written(const ParameterValue& value);

enum class RunsIn : std::uint8_t { loop, thread, process, async };
/// How the workers of a stage get their next piece of work.
enum class GetsWork : std::uint8_t {
  shared_queue,  ///< whoever is free takes it
  in_turn,       ///< dealt out: worker 0, 1, 2, ...
  own_shard,     ///< each reads its own part of a stream
};
/// Model quantity that a parameter sets.
enum class Quantity : std::uint8_t {
  none,            ///< nothing that is modelled: it is shown, and no more
  workers,         ///< of a stage or operator; 0: it runs in the training loop
  window,          ///< batches in flight for each worker
  capacity,        ///< of a buffer or queue
  order,           ///< true: items leave in the order in which they came
  keeps_workers,   ///< true: workers stay between epochs
  pins,            ///< true: batches are copied to page-locked memory
  passes_by_name,  ///< choices: shared memory is passed by descriptor, or by name
  executor,        ///< "thread" or "process"
  copies_ahead,    ///< true: a thread copies batches to the device while the step runs
};

std::array<std::string_view, 4> names_of(RunsIn) noexcept;
std::array<std::string_view, 3> names_of(GetsWork) noexcept;
std::array<std::string_view, 10> names_of(Quantity) noexcept;

struct LoaderParameter {
  std::string name;
  ParameterValue value;
  ParameterValue usual;
  std::vector<std::string> choices;
  std::optional<double> min;
  std::optional<double> max;
  bool live = false;
  bool needs_workers = false;
  Quantity sets = Quantity::none;
  int stage = -1;
  std::string set_in;
};

constexpr About about(Of<LoaderParameter>) {
  return {"LoaderParameter", "A parameter of the framework's loader."};
}
template <class Visit>
constexpr void figures_of(Of<LoaderParameter>, Visit&& figure) {
  figure("name", &LoaderParameter::name, {"Its name, as its user writes it."});
  figure("value", &LoaderParameter::value, {"What it is set to, in its own type."});
  figure("usual", &LoaderParameter::usual,
         {"The framework's default: a value like that goes without saying."});
  figure("choices", &LoaderParameter::choices, {"The values that a text may have."});
  figure("min", &LoaderParameter::min, {"The least value that it takes; null: no limit.", &kName});
  figure("max", &LoaderParameter::max, {"The largest value that it takes; null: no limit.", &kName});
  figure("live", &LoaderParameter::live, {"Whether it can be set while the loader runs."});
  figure("needs_workers", &LoaderParameter::needs_workers,
         {"Whether the framework refuses or ignores it without workers."});
  figure("sets", &LoaderParameter::sets,
         {"What of the loader it sets: none, workers, window (batches in flight for each worker), capacity, "
          "order, keeps_workers (between epochs), pins, passes_by_name (`choices`: shared memory by "
          "descriptor, by name), executor or copies_ahead (batches are copied to the device while the step "
          "runs)."});
  figure("stage", &LoaderParameter::stage,
         {"Place in `stages` of the one that it sets; -1: it is of the whole loader.", &kName});
  figure("set_in", &LoaderParameter::set_in,
         {"Where its user sets it, if not at the loader: `set x in TrainingArguments`."});
}

struct LoaderStage {
  std::string name;
  std::vector<int> operators;
  int workers = 1;
  RunsIn runs_in = RunsIn::loop;
  GetsWork gets_work = GetsWork::shared_queue;
  bool ordered = true;
  std::string widened_by;
  std::string pool;
};

constexpr About about(Of<LoaderStage>) {
  return {"LoaderStage", "Operators that the same workers run, one after the other for each item."};
}
template <class Visit>
constexpr void figures_of(Of<LoaderStage>, Visit&& figure) {
  figure("name", &LoaderStage::name, {"What the framework calls it."});
  figure("operators", &LoaderStage::operators,
         {"Places in the profile's `operators`, in the order of the data flow.", &kName});
  figure("workers", &LoaderStage::workers, {"How many there are; 0: it runs in the training loop."});
  figure("runs_in", &LoaderStage::runs_in, {"loop, thread, process or async."});
  figure("gets_work", &LoaderStage::gets_work,
         {"shared_queue (whoever is free takes it), in_turn (dealt out to worker 0, 1, 2, ...) or own_shard "
          "(each reads its own part of a stream)."});
  figure("ordered", &LoaderStage::ordered, {"Whether items leave in the order in which they came."});
  figure("widened_by", &LoaderStage::widened_by,
         {"The parameter that sets its workers; \"\": it cannot be done in parallel."});
  figure("pool", &LoaderStage::pool,
         {"The parameter that sets how many threads there are for this stage and others of that pool, where "
          "they are fewer than the stages' workers together; \"\": its workers are its own."});
}

struct LoaderBuffer {
  int from = -1;
  int to = -1;
  std::int64_t capacity = 0;
  bool is_window = false;
  bool per_worker = false;
  std::string set_by;
};

constexpr About about(Of<LoaderBuffer>) { return {"LoaderBuffer", "Where finished work waits."}; }
template <class Visit>
constexpr void figures_of(Of<LoaderBuffer>, Visit&& figure) {
  figure("from", &LoaderBuffer::from, {"Place in `stages` of the one that fills it.", &kName});
  figure("to", &LoaderBuffer::to,
         {"Place in `stages` of the one that takes from it; -1: the training loop.", &kName});
  figure("capacity", &LoaderBuffer::capacity, {"Items, or batches of a window."});
  figure("is_window", &LoaderBuffer::is_window,
         {"True: it counts what is in flight from `from` on until `to` has it, and is filled before anything "
          "is asked for. False: a queue between the two."});
  figure("per_worker", &LoaderBuffer::per_worker, {"Whether the capacity is that of each worker."});
  figure("set_by", &LoaderBuffer::set_by, {"The parameter that sets it; \"\" where it is fixed."});
}

struct LoaderDelivery {
  bool ordered = true;
  int draws = -1;
  int hands_over = -1;
  int pins = -1;
};

constexpr About about(Of<LoaderDelivery>) {
  return {
      "LoaderDelivery",
      "How finished batches reach the training loop. A stage of -1 means that the loader has no such stage."};
}
template <class Visit>
constexpr void figures_of(Of<LoaderDelivery>, Visit&& figure) {
  figure("ordered", &LoaderDelivery::ordered, {"In the order in which they were drawn."});
  figure("draws", &LoaderDelivery::draws,
         {"The stage that decides what goes into a batch, in the loop.", &kName});
  figure("hands_over", &LoaderDelivery::hands_over,
         {"The stage that passes a batch from a worker to the loop.", &kName});
  figure("pins", &LoaderDelivery::pins,
         {"The stage, one thread, that copies a batch to page-locked memory.", &kName});
}

struct LoaderModel {
  std::string framework;
  std::vector<LoaderStage> stages;
  std::vector<LoaderBuffer> buffers;
  LoaderDelivery delivery;
  std::vector<LoaderParameter> parameters;
  std::string shard_advice;
  std::string rows_advice;
};

constexpr About about(Of<LoaderModel>) {
  return {"LoaderModel",
          "How a framework's loader is built and set: all that a verdict knows of the framework."};
}
template <class Visit>
constexpr void figures_of(Of<LoaderModel>, Visit&& figure) {
  figure("framework", &LoaderModel::framework, {"Name of its library."});
  figure("stages", &LoaderModel::stages, {"In the order of the data flow."});
  figure("buffers", &LoaderModel::buffers, {"Between them, and before the training loop."});
  figure("delivery", &LoaderModel::delivery, {"How finished batches reach the loop."});
  figure("parameters", &LoaderModel::parameters, {"In the order in which they are shown."});
  figure("shard_advice", &LoaderModel::shard_advice,
         {"What the user's stream must do to give each worker its own part; may be empty."});
  figure("rows_advice", &LoaderModel::rows_advice,
         {"How the user takes the rows of a batch at once; may be empty."});
}

/// The first LoaderParameter, or Parameter, that sets it; null if there is none.
template <class Parameter>
const Parameter* parameter_that_sets(const std::vector<Parameter>& parameters, Quantity quantity) noexcept {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [quantity](const Parameter& each) { return each.sets == quantity; });
  return found == parameters.end() ? nullptr : &*found;
}

/// The buffer that counts the batches in flight of a stage's workers; null if there is none, so that
/// queues alone connect the stages.
const LoaderBuffer* window_of(const LoaderModel& model) noexcept;

/// The parameter of this name; null if there is none.
const LoaderParameter* parameter_named(const LoaderModel& model, std::string_view name) noexcept;

/// Indices that point nowhere become -1 (of operators: are left out), counts are 0 to a million.
void put_within_bounds(LoaderModel& model, std::size_t operators);

/// From JSON text as an adapter writes it. Empty for what is not a model: hostile text is refused. Within
/// bounds, without operators.
std::optional<LoaderModel> loader_model_from_json(std::string_view text);

}  // namespace headrace::profile
