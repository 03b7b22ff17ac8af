#include "support/simulation/dataloader_model.h"

#include <algorithm>
#include <stdexcept>

namespace headrace::simulation {

using profile::Quantity;

namespace {

profile::LoaderParameter made(const std::string& name, profile::ParameterValue value, Quantity sets,
                              profile::ParameterValue usual = {}) {
  profile::LoaderParameter parameter;
  parameter.name = name;
  parameter.value = std::move(value);
  parameter.usual = std::move(usual);
  parameter.sets = sets;
  parameter.needs_workers =
      sets == Quantity::window || sets == Quantity::order || sets == Quantity::keeps_workers;
  return parameter;
}

std::size_t stage_of(const profile::OperatorProfile& op) {
  if (op.kind == profile::OperatorKind::sampler) return 0;
  if (op.kind == profile::OperatorKind::handoff) return 2;
  return op.kind == profile::OperatorKind::pin_memory ? 3 : 1;
}

}  // namespace

void describe(const DataLoader& loader, profile::Profile& profile) {
  const bool workers = loader.num_workers > 0;
  profile::LoaderModel model;
  model.framework = "torch";
  model.stages.resize(4);
  model.stages[0].name = "sampler";
  model.stages[2].name = "handoff";
  model.stages[3].name = "pin_memory";
  model.stages[3].runs_in = profile::RunsIn::thread;
  profile::LoaderStage& makes = model.stages[1];
  makes.name = "workers";
  makes.workers = loader.num_workers;
  makes.runs_in = workers ? profile::RunsIn::process : profile::RunsIn::loop;
  makes.gets_work = loader.stream ? profile::GetsWork::own_shard : profile::GetsWork::in_turn;
  makes.ordered = loader.in_order;
  makes.widened_by = "num_workers";
  model.buffers = {{1, -1, workers ? loader.prefetch_factor : 0, true, true, "prefetch_factor"}};
  model.delivery = {loader.in_order, 0, 2, 3};
  model.parameters = {
      made("num_workers", loader.num_workers, Quantity::workers),
      made("prefetch_factor", loader.prefetch_factor, Quantity::window),
      made("batch_size", loader.batch_size, Quantity::none),
      made("in_order", loader.in_order, Quantity::order, true),
      made("persistent_workers", loader.persistent_workers, Quantity::keeps_workers, false),
      made("pin_memory", loader.pin_s > 0, Quantity::pins, false),
      made("sharing_strategy", "file_descriptor", Quantity::passes_by_name, "file_descriptor"),
      made("dataset_kind", loader.stream ? "iterable" : "map", Quantity::none, "map")};
  if (!workers) model.parameters[1].value = std::monostate();
  model.parameters[6].choices = {"file_descriptor", "file_system"};
  model.rows_advice = "define __getitems__";
  model.shard_advice = "the dataset is a stream and must give each worker its own part";
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const profile::OperatorProfile& op = profile.operators[i];
    if (op.kind == profile::OperatorKind::transfer || op.fidelity == profile::Fidelity::inclusive) continue;
    const std::size_t stage = stage_of(op);
    if (stage != 1 || op.in_sink == !workers) model.stages[stage].operators.push_back(static_cast<int>(i));
  }
  profile.model = std::move(model);
}

profile::LoaderParameter& parameter(profile::Profile& profile, const std::string& name) {
  for (profile::LoaderParameter& each : profile.model->parameters) {
    if (each.name == name) return each;
  }
  throw std::out_of_range(name);
}

}  // namespace headrace::simulation
