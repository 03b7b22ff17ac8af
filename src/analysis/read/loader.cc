#include "headrace/analysis/read/loader.h"

#include <algorithm>

#include "headrace/analysis/read/demand.h"
#include "numbers.h"

namespace headrace::analysis {
namespace {

bool is_true(const profile::LoaderParameter* parameter) {
  const bool* value = parameter == nullptr ? nullptr : std::get_if<bool>(&parameter->value);
  return value != nullptr && *value;
}

/// The only operator of a stage; -1 if there is none.
int first_of(const profile::LoaderModel& model, int stage) {
  if (stage < 0 || static_cast<std::size_t>(stage) >= model.stages.size()) return -1;
  const std::vector<int>& operators = model.stages[static_cast<std::size_t>(stage)].operators;
  return operators.empty() ? -1 : operators.front();
}

}  // namespace

const profile::LoaderParameter* parameter_of(const profile::Profile& profile,
                                             profile::Quantity quantity) noexcept {
  return profile.model ? profile::parameter_that_sets(profile.model->parameters, quantity) : nullptr;
}

std::string setting(const profile::Profile& profile, std::string_view parameter) {
  for (const profile::Setting& each : profile.settings) {
    if (each.parameter == parameter) return each.value;
  }
  return "";
}

bool runs_in_step(const profile::Profile& profile, int op) {
  if (profile.operators[static_cast<std::size_t>(op)].kind != profile::OperatorKind::transfer) return false;
  return std::none_of(profile.queues.begin(), profile.queues.end(), [op](const profile::QueueProfile& queue) {
    return contains(queue.from_operators, op) || contains(queue.to_operators, op);
  });
}

std::optional<Loader> loader_of(const profile::Profile& profile) {
  if (!profile.model) return std::nullopt;
  const profile::LoaderModel& model = *profile.model;
  const profile::LoaderBuffer* window = profile::window_of(model);
  if (window == nullptr || window->from < 0) return std::nullopt;
  const auto from = static_cast<std::size_t>(window->from);
  if (from >= model.stages.size()) return std::nullopt;
  const profile::LoaderStage& makes = model.stages[from];
  Loader loader;
  loader.parameters = model.parameters;
  loader.shard_advice = model.shard_advice;
  loader.rows_advice = model.rows_advice;
  loader.workers = makes.workers;
  loader.in_workers = makes.operators;
  loader.stream = makes.gets_work == profile::GetsWork::own_shard;
  if (window->capacity > 0) loader.per_worker = static_cast<int>(window->capacity);
  loader.ordered = model.delivery.ordered;
  loader.sampler = first_of(model, model.delivery.draws);
  loader.handoff = first_of(model, model.delivery.hands_over);
  loader.pin = first_of(model, model.delivery.pins);
  loader.keeps_workers = is_true(loader.parameter(profile::Quantity::keeps_workers));
  loader.pins = is_true(loader.parameter(profile::Quantity::pins));
  loader.device = setting(profile, "device");
  loader.batch = setting(profile, "batch");
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    if (profile.operators[i].kind == profile::OperatorKind::transfer) loader.to_device = static_cast<int>(i);
  }
  return loader;
}

double work_per_batch_s(const profile::Profile& profile, const Loader& loader) {
  double sum = 0;
  for (int i : loader.in_workers) {
    const profile::OperatorProfile& op = profile.operators[static_cast<std::size_t>(i)];
    sum += op.demand_s * op.workers;
  }
  return sum;
}

bool computes(const profile::Profile& profile, const Loader& loader) {
  double on_core_s = 0;
  double busy_s = 0;
  for (int i : loader.in_workers) {
    const profile::OperatorProfile& op = profile.operators[static_cast<std::size_t>(i)];
    on_core_s += std::max(0.0, cpu_bound_share(op)) * op.busy_s;
    busy_s += op.busy_s;
  }
  return on_core_s > kMostOf * busy_s;
}

}  // namespace headrace::analysis
