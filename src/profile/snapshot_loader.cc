#include "profile/snapshot_parts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string_view>

#include "headrace/profile/stages.h"
#include "profile/profile_fields.h"

namespace headrace::profile {
namespace {

double items_of(const SegmentFigures& figures, const GraphNode& node) {
  double items = 0;
  for (const std::uint32_t cell : node.cells) items += static_cast<double>(figures.cells[cell].items);
  return items;
}

template <class Visit>
void each_fact(const LoaderRecord& loader, Visit&& visit) {
  std::string_view text = text_of(loader.facts);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos && equals > 0)
      visit(line.substr(0, equals), line.substr(equals + 1));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
}

/// The parameters as text, then what was seen while the loader ran.
std::vector<Setting> settings_of(const LoaderRecord& loader, const std::optional<LoaderModel>& model) {
  std::vector<Setting> settings;
  if (model) {
    settings.push_back({"framework", model->framework});
    for (const LoaderParameter& each : model->parameters) {
      const bool has_value = !std::holds_alternative<std::monostate>(each.value);
      settings.push_back({each.name, has_value ? as_written(each.value) : "None"});
    }
  }
  each_fact(loader, [&](std::string_view name, std::string_view value) {
    settings.push_back({std::string(name), std::string(value)});
  });
  return settings;
}

void add_up(States& to, double seconds, const States& from) {
  to.busy += from.busy * seconds;
  to.blocked_in += from.blocked_in * seconds;
  to.blocked_out += from.blocked_out * seconds;
}

/// Latency of two sets of calls: counts and means exactly, quantiles by weight.
Latency joined(const Latency& a, const Latency& b) {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  const double weight = static_cast<double>(a.count) / static_cast<double>(a.count + b.count);
  const auto mix = [weight](double x, double y) { return weight * x + (1 - weight) * y; };
  return {a.count + b.count,     mix(a.mean_s, b.mean_s),    mix(a.p50_s, b.p50_s),
          mix(a.p90_s, b.p90_s), std::max(a.p99_s, b.p99_s), std::max(a.max_s, b.max_s)};
}

void join(WorkerProfile& to, const WorkerProfile& from) {
  constexpr std::size_t kSlowest = 8;
  // Both rows' shares are of the whole loop, in which the worker of another epoch was not there: busy seconds
  // give its length.
  const auto loop_s = [](const WorkerProfile& row) {
    return row.states.busy > 0 ? row.busy_s / row.states.busy : 0.0;
  };
  States states;
  add_up(states, loop_s(to), to.states);
  add_up(states, loop_s(from), from.states);
  const double worked = states.busy + states.blocked_in + states.blocked_out;
  const double all = std::max({loop_s(to), loop_s(from), worked});
  if (all > 0)
    to.states = {states.busy / all, states.blocked_in / all, states.blocked_out / all, 1 - worked / all};
  to.pid = from.pid;
  to.tid = from.tid;
  to.alive = from.alive;
  add_up(to, from);
  to.service = joined(to.service, from.service);
  to.sequence.insert(to.sequence.end(), from.sequence.begin(), from.sequence.end());
  to.slowest.insert(to.slowest.end(), from.slowest.begin(), from.slowest.end());
  std::sort(to.slowest.begin(), to.slowest.end(),
            [](const ServiceSample& a, const ServiceSample& b) { return a.wall_s > b.wall_s; });
  if (to.slowest.size() > kSlowest) to.slowest.resize(kSlowest);
}

Parameter parameter_of(const LoaderParameter& parameter, double value) {
  return {parameter.name, value, parameter.min, parameter.max, parameter.live, parameter.sets};
}

/// The parameter that lengthens the buffer between these stages of the model.
Parameter buffer_parameter(const LoaderModel& model, int from, int to, double capacity) {
  for (const LoaderBuffer& buffer : model.buffers) {
    if (buffer.from != from || buffer.to != to) continue;
    if (const LoaderParameter* parameter = parameter_named(model, buffer.set_by))
      return parameter_of(*parameter, capacity);
  }
  return {};
}

}  // namespace

std::string_view fact_of(const LoaderRecord& loader, std::string_view name) {
  std::string_view found;
  each_fact(loader,
            [&](std::string_view each, std::string_view value) { found = each == name ? value : found; });
  return found;
}

double loader_items_per_batch(const SegmentFigures& figures, const Graph& graph, const GraphNode& node,
                              double joined) {
  if (node.serves) return joined;
  const double steps = static_cast<double>(figures.sink.steps);
  if (!node.in_step) {
    // The collate function runs once for every batch that is made.
    for (const GraphNode& other : graph.nodes) {
      if (other.kind != OperatorKind::batch || other.in_sink != node.in_sink || other.serves) continue;
      const double batches = items_of(figures, other);
      if (batches > 0) return joined * items_of(figures, node) / batches;
    }
  }
  return steps > 0 ? items_of(figures, node) / steps : 0;
}

void merge_worker_rows(std::vector<WorkerProfile>& rows) {
  std::vector<WorkerProfile> merged;
  for (WorkerProfile& row : rows) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const WorkerProfile& known) {
      return row.worker_id && known.worker_id == row.worker_id;
    });
    if (same == merged.end()) {
      merged.push_back(std::move(row));
    } else {
      join(*same, row);
    }
  }
  std::stable_sort(merged.begin(), merged.end(), [](const WorkerProfile& a, const WorkerProfile& b) {
    constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
    return a.worker_id.value_or(kLast) < b.worker_id.value_or(kLast);
  });
  rows = std::move(merged);
}

std::optional<LoaderModel> model_of(const LoaderRecord& loader) {
  return loader.has_own_graph.load() == 0 ? std::nullopt : loader_model_from_json(text_of(loader.model));
}

std::pair<std::string, std::optional<double>> split_parameter(std::string_view parameter) {
  const std::size_t at = parameter.find("<=");
  int most = 0;
  if (at != std::string_view::npos) {
    std::from_chars(parameter.data() + at + 2, parameter.data() + parameter.size(), most);
    parameter = parameter.substr(0, at);
  }
  return {std::string(parameter), most > 0 ? std::optional<double>(most) : std::nullopt};
}

std::vector<Parameter> stage_parameters(const LoaderModel& model, const GraphNode& node) {
  std::vector<Parameter> parameters;
  if (node.stage < 0 || static_cast<std::size_t>(node.stage) >= model.stages.size()) return parameters;
  const LoaderStage& of = model.stages[static_cast<std::size_t>(node.stage)];
  if (const LoaderParameter* widens = parameter_named(model, node.pool > 0 ? of.pool : of.widened_by)) {
    // A stage that runs in the program's own thread has one worker, and its parameter is 0.
    const auto* written = std::get_if<std::int64_t>(&widens->value);
    const bool in_own_thread = written != nullptr && *written == 0 && of.runs_in == RunsIn::thread;
    parameters.push_back(parameter_of(*widens, node.pool > 0 ? node.pool : in_own_thread ? 0 : of.workers));
  }
  for (const LoaderParameter& parameter : model.parameters) {
    if (parameter.stage == node.stage && parameter.sets == Quantity::order)
      parameters.push_back(parameter_of(parameter, of.ordered ? 1 : 0));
  }
  return parameters;
}

std::optional<Parameter> loader_queue_parameter(const QueueRecord& queue, double capacity,
                                                const std::optional<LoaderModel>& model) {
  const std::uint32_t role = queue.role.load();
  if (role == static_cast<std::uint32_t>(QueueRole::user)) return std::nullopt;
  if (role == static_cast<std::uint32_t>(QueueRole::between)) {
    const int from = static_cast<int>(queue.from.load()) - 1;
    const int to = static_cast<int>(queue.to.load()) - 1;
    return model ? buffer_parameter(*model, from, to, capacity) : Parameter{};
  }
  const LoaderBuffer* window = model ? window_of(*model) : nullptr;
  Parameter parameter{window == nullptr ? "" : window->set_by, 0, 1.0, std::nullopt, false, Quantity::window};
  if (parameter.parameter.empty()) return parameter;
  // An index queue holds one worker's part of the window.
  if (role == static_cast<std::uint32_t>(QueueRole::index)) parameter.value = capacity;
  if (role == static_cast<std::uint32_t>(QueueRole::results))
    parameter.value = static_cast<double>(window->capacity);
  return parameter;
}

bool is_stream(const std::optional<LoaderModel>& model) noexcept {
  return model && std::any_of(model->stages.begin(), model->stages.end(), [](const LoaderStage& stage) {
           return stage.gets_work == GetsWork::own_shard;
         });
}

const LoaderStage* stage_of(const GraphNode& node, const std::optional<LoaderModel>& model) noexcept {
  if (!model || node.stage < 0 || static_cast<std::size_t>(node.stage) >= model->stages.size())
    return nullptr;
  return &model->stages[static_cast<std::size_t>(node.stage)];
}

void fill_stages(const Graph& graph, Profile& profile) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    const LoaderStage* stage = stage_of(node, profile.model);
    if (node.in_step || stage == nullptr) continue;
    // Calls in the loop before there were workers are no part of theirs.
    const bool draws = node.stage == profile.model->delivery.draws;
    if (!node.serves && !draws && node.in_sink != (stage->workers == 0)) continue;
    profile.model->stages[static_cast<std::size_t>(node.stage)].operators.push_back(static_cast<int>(i));
  }
}

void add_loader_facts(const LoaderRecord& loader, const SegmentFigures& figures, Profile& profile) {
  profile.settings = settings_of(loader, profile.model);
  if (loader.has_own_graph.load() == 0) return;
  const metrics::HandoffCell& sampled = loader.handoff;
  if (const auto samples = static_cast<double>(sampled.counted.load());
      samples > 0 && sampled.batches.load() == 0 && loader.workers.load() == 0) {
    const auto mean = [&](const metrics::Relaxed<std::int64_t>& total) {
      return std::max(0.0, static_cast<double>(total.load())) / samples;
    };
    profile.handoff_estimate = HandoffEstimate{mean(sampled.message_bytes), mean(sampled.tensors),
                                               mean(sampled.pickle_cpu_ns) * kSecond};
  }
  const HandoffFigures& from = figures.handoff;
  if (from.batches <= 0 && from.unused_batches <= 0) return;
  const auto mean = [&](double total) { return from.batches > 0 ? total / from.batches : 0; };
  Handoff handoff;
  handoff.batches = static_cast<std::uint64_t>(from.batches);
  handoff.message_bytes = mean(from.message_bytes);
  handoff.tensors = from.counted > 0 ? from.tensors / from.counted : 0;
  handoff.pickle_s = mean(from.pickle_ns) * kSecond;
  handoff.pickle_cpu_s = from.pickle_cpu_reads > 0 ? from.pickle_cpu_ns / from.pickle_cpu_reads * kSecond : 0;
  handoff.send_s = mean(from.send_ns) * kSecond;
  handoff.receive_s = mean(from.receive_ns) * kSecond;
  handoff.receive_cpu_s =
      from.receive_cpu_reads > 0 ? from.receive_cpu_ns / from.receive_cpu_reads * kSecond : 0;
  handoff.unused_batches = static_cast<std::uint64_t>(from.unused_batches);
  profile.handoff = handoff;
}

void add_loader_notes(const LoaderRecord& loader, Profile& profile) {
  const std::uint32_t gaps = loader.gaps.load();
  const auto note = [&](std::uint32_t gap, const char* what) {
    if ((gaps & gap) != 0) profile.notes.emplace_back(what);
  };
  note(kNoIteratorDetail,
       "operator detail unavailable: the loader's iterator is not as expected in this version");
  note(kNoWorkerDetail, "operator detail unavailable: nothing could be recorded inside the loader's workers");
  note(kNoHandoffDetail,
       "hand-off detail unavailable: the loader's queues are not as expected in this version");
}

}  // namespace headrace::profile
