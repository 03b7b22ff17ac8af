#include "headrace/analysis/diagnosis/loader.h"

#include <algorithm>
#include <charconv>

#include "headrace/analysis/diagnosis/advice.h"
#include "headrace/analysis/diagnosis/demand.h"

namespace headrace::analysis {
namespace {

constexpr int kMostSet = 1'000'000;

/// A whole number not below `least`; `otherwise` where the text is none ("None").
int number(const std::string& text, int least, int otherwise) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return otherwise;
  return std::clamp(value, least, kMostSet);
}

}  // namespace

std::string setting(const profile::Profile& profile, std::string_view parameter) {
  for (const profile::Setting& each : profile.settings) {
    if (each.parameter == parameter) return each.value;
  }
  return "";
}

bool runs_in_step(const profile::Profile& profile, const profile::OperatorProfile& op) {
  if (op.kind != "transfer") return false;
  return std::none_of(profile.queues.begin(), profile.queues.end(), [&](const profile::QueueProfile& queue) {
    return names(queue.from, op.name) || names(queue.to, op.name);
  });
}

std::optional<Loader> loader_of(const profile::Profile& profile) {
  if (setting(profile, "framework") != "torch") return std::nullopt;
  Loader loader;
  loader.num_workers = number(setting(profile, "num_workers"), 0, 0);
  loader.prefetch_factor = number(setting(profile, "prefetch_factor"), 1, 2);
  loader.in_order = setting(profile, "in_order") != "False";
  loader.persistent_workers = setting(profile, "persistent_workers") == "True";
  loader.pin_memory = setting(profile, "pin_memory") == "True";
  loader.stream = setting(profile, "dataset_kind") == "iterable";
  loader.sharing_strategy = setting(profile, "sharing_strategy");
  loader.device = setting(profile, "device");
  loader.trainer = setting(profile, "trainer");
  loader.batch = setting(profile, "batch");
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const profile::OperatorProfile& op = profile.operators[i];
    const int index = static_cast<int>(i);
    if (op.kind == "sampler") {
      loader.sampler = index;
    } else if (op.kind == "handoff") {
      loader.handoff = index;
    } else if (op.kind == "pin_memory") {
      loader.pin = index;
    } else if (op.kind == "transfer") {
      loader.to_device = index;
    } else if (op.fidelity != "inclusive" && op.in_sink == (loader.num_workers == 0)) {
      loader.in_workers.push_back(index);
    }
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
  constexpr double kMostly = 0.7;
  double on_core_s = 0;
  double busy_s = 0;
  for (int i : loader.in_workers) {
    const profile::OperatorProfile& op = profile.operators[static_cast<std::size_t>(i)];
    on_core_s += std::max(0.0, cpu_bound_share(op)) * op.busy_s;
    busy_s += op.busy_s;
  }
  return on_core_s > kMostly * busy_s;
}

}  // namespace headrace::analysis
