// How a framework's loader is built and set, as data. The adapter that knows the framework fills it; graph,
// diagnosis, advice, prediction and report read nothing else about it.
//
//     draws ─▶ [ a window of batches in flight:  stage with workers ─▶ hands over ─▶ pins ] ─▶ loop
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/profile/parameter_value.h"

namespace headrace::profile {

enum class RunsIn : std::uint8_t { loop, thread, process, async };
/// How the workers of a stage get their next piece of work.
enum class GetsWork : std::uint8_t {
  shared_queue,  ///< whoever is free takes it
  in_turn,       ///< dealt out: worker 0, 1, 2, ...
  own_shard,     ///< each reads its own part of a stream
};
/// What of the model a parameter sets.
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
};

std::array<std::string_view, 4> names_of(RunsIn) noexcept;
std::array<std::string_view, 3> names_of(GetsWork) noexcept;
std::array<std::string_view, 9> names_of(Quantity) noexcept;

/// A parameter of the framework's, as its user writes it.
struct LoaderParameter {
  std::string name;
  ParameterValue value;
  ParameterValue usual;              ///< the framework's default: a value like that goes without saying
  std::vector<std::string> choices;  ///< of a text: the values that there are
  std::optional<double> min;
  std::optional<double> max;
  bool live = false;           ///< can be set while the loader runs
  bool needs_workers = false;  ///< the framework refuses it, or ignores it, without workers
  Quantity sets = Quantity::none;
  std::string set_in;  ///< where its user sets it, if not at the loader: "set x in TrainingArguments"
};

/// Operators that the same workers run, one after the other for each item.
struct LoaderStage {
  std::string name;
  std::vector<int> operators;  ///< into Profile::operators, in the order of the data flow
  int workers = 1;             ///< 0: it runs in the training loop
  RunsIn runs_in = RunsIn::loop;
  GetsWork gets_work = GetsWork::shared_queue;
  bool ordered = true;
  std::string widened_by;  ///< the parameter that sets its workers; "": it cannot be done in parallel
};

/// Where finished work waits.
struct LoaderBuffer {
  int from = -1;  ///< stage that fills it
  int to = -1;    ///< stage that takes from it; -1: the training loop
  std::int64_t capacity = 0;
  /// A window counts what is in flight from `from` on until `to` has it, and is filled before anything is
  /// asked for. False: a queue between the two.
  bool is_window = false;
  bool per_worker = false;  ///< the capacity is that of each worker
  std::string set_by;       ///< parameter; "" where it is fixed
};

/// How finished batches reach the loop. Stages below 0: there is none.
struct LoaderDelivery {
  bool ordered = true;  ///< in the order in which they were drawn
  int draws = -1;       ///< decides what goes into a batch, in the loop
  int hands_over = -1;  ///< passes a batch from a worker to the loop
  int pins = -1;        ///< one thread that copies it to page-locked memory
};

struct LoaderModel {
  std::string framework;  ///< the name of its library
  std::vector<LoaderStage> stages;
  std::vector<LoaderBuffer> buffers;
  LoaderDelivery delivery;
  std::vector<LoaderParameter> parameters;  ///< in the order in which they are shown
  std::string shard_advice;  ///< what the user's stream must do to give each worker its own part
};

/// The first parameter that sets it; null where the framework has none.
const LoaderParameter* parameter_that_sets(const LoaderModel& model, Quantity quantity) noexcept;

/// Indices that point nowhere become -1 (of operators: are left out), counts are 0 to a million.
void put_within_bounds(LoaderModel& model, std::size_t operators);

/// From JSON text as an adapter writes it. Empty for what is no model: hostile text is refused. Within
/// bounds, without operators.
std::optional<LoaderModel> loader_model_from_json(std::string_view text);

}  // namespace headrace::profile
