#include "headrace/profile/loader_model.h"

#include <algorithm>

#include "headrace/profile/json_fields.h"
#include "profile/profile_fields.h"

namespace headrace::profile {
namespace {

constexpr std::int64_t kMax = 1'000'000;
/// A loader that a person wrote has a handful of each.
constexpr std::size_t kMaxParts = 256;

int within(int index, std::size_t size) {
  return index >= 0 && static_cast<std::size_t>(index) < size ? index : -1;
}

}  // namespace

std::array<std::string_view, 4> names_of(RunsIn) noexcept { return {"loop", "thread", "process", "async"}; }
std::array<std::string_view, 3> names_of(GetsWork) noexcept {
  return {"shared_queue", "in_turn", "own_shard"};
}
std::array<std::string_view, 10> names_of(Quantity) noexcept {
  return {"none",          "workers", "window",         "capacity", "order",
          "keeps_workers", "pins",    "passes_by_name", "executor", "copies_ahead"};
}

std::string as_written(const ParameterValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "True" : "False";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  return "";
}

const LoaderBuffer* window_of(const LoaderModel& model) noexcept {
  const auto found = std::find_if(model.buffers.begin(), model.buffers.end(),
                                  [](const LoaderBuffer& each) { return each.is_window; });
  return found == model.buffers.end() ? nullptr : &*found;
}

const LoaderParameter* parameter_named(const LoaderModel& model, std::string_view name) noexcept {
  const auto found = std::find_if(model.parameters.begin(), model.parameters.end(),
                                  [name](const LoaderParameter& each) { return each.name == name; });
  return found == model.parameters.end() ? nullptr : &*found;
}

void put_within_bounds(LoaderModel& model, std::size_t operators) {
  model.stages.resize(std::min(model.stages.size(), kMaxParts));
  model.buffers.resize(std::min(model.buffers.size(), kMaxParts));
  model.parameters.resize(std::min(model.parameters.size(), kMaxParts));
  for (LoaderStage& stage : model.stages) {
    stage.workers = static_cast<int>(std::clamp<std::int64_t>(stage.workers, 0, kMax));
    std::erase_if(stage.operators, [&](int op) { return within(op, operators) < 0; });
  }
  for (LoaderBuffer& buffer : model.buffers) {
    buffer.from = within(buffer.from, model.stages.size());
    buffer.to = within(buffer.to, model.stages.size());
    buffer.capacity = std::clamp<std::int64_t>(buffer.capacity, 0, kMax);
  }
  for (LoaderParameter& parameter : model.parameters)
    parameter.stage = within(parameter.stage, model.stages.size());
  for (int* stage : {&model.delivery.draws, &model.delivery.hands_over, &model.delivery.pins})
    *stage = within(*stage, model.stages.size());
}

std::optional<LoaderModel> loader_model_from_json(std::string_view text) try {
  if (text.empty()) return std::nullopt;
  const nlohmann::json tree = parse_json(text, "loader model");
  LoaderModel model;
  JsonFieldReader reader(tree, "model");
  fields_of(reader, model);
  put_within_bounds(model, 0);
  return model;
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace headrace::profile
