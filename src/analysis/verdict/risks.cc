#include "diagnosis_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "../read/numbers.h"
#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/verdict/advice.h"
#include "headrace/analysis/words.h"
#include "long_steps.h"

namespace headrace::analysis {
namespace {

constexpr double kHour_s = 3600;

/// " (prefetch)": the framework's own name, where it has one.
std::string named(const profile::LoaderParameter* parameter) {
  return parameter == nullptr ? "" : " (" + parameter->name + ")";
}

/// Worker processes hand batches over in shared memory, and a page that cannot be had there is a SIGBUS.
std::optional<Risk> shared_memory(const profile::Profile& profile, const RiskThresholds& thresholds) {
  const std::optional<Loader> loader = loader_of(profile);
  if (!loader || loader->workers < 1 || !profile.sink.batch_bytes || !profile.host.shared_memory)
    return std::nullopt;
  const double needed =
      static_cast<double>(loader->window()) * static_cast<double>(*profile.sink.batch_bytes);
  const auto free = static_cast<double>(*profile.host.shared_memory);
  // Batches in flight are already taken from what is free.
  if (needed < thresholds.shared_memory_share * (free + needed)) return std::nullopt;
  return Risk{
      RiskKind::shared_memory,
      as_written(loader->window()) + " batches in flight (" + counted(loader->workers, "worker") + " x " +
          as_written(loader->per_worker) + ") of up to " +
          memory_size(static_cast<double>(*profile.sink.batch_bytes)) + " need " + memory_size(needed) +
          " of shared memory; only " + memory_size(free) +
          " were free in /dev/shm at the lowest point. A worker that finds none is ended with a bus error",
      {{"needed_bytes", needed},
       {"free_bytes", free},
       {"batches_in_flight", static_cast<double>(loader->window())}},
      "fewer workers, fewer batches in flight" + named(loader->parameter(profile::Quantity::window)) +
          ", or more shared memory (docker run --shm-size, an emptyDir "
          "of medium Memory mounted at /dev/shm)"};
}

std::optional<Risk> memory_growth(const profile::Profile& profile, const RiskThresholds& thresholds) {
  const profile::Host& host = profile.host;
  if (!host.memory_loss_per_s || !host.available_memory || *host.memory_loss_per_s <= 0) return std::nullopt;
  const double left_s = static_cast<double>(*host.available_memory) / *host.memory_loss_per_s;
  if (left_s > thresholds.memory_left_s) return std::nullopt;
  // More than the run's processes hold altogether was taken by others.
  const double lost = *host.memory_loss_per_s * profile.elapsed_s;
  if (host.memory && lost > static_cast<double>(*host.memory)) return std::nullopt;
  return Risk{
      RiskKind::memory_growth,
      "free memory shrinks by " + memory_size(*host.memory_loss_per_s * kHour_s) + " an hour; the " +
          memory_size(static_cast<double>(*host.available_memory)) + " that are left last " +
          fmt::format("{:.2g} hours", left_s / kHour_s),
      {{"loss_per_s", *host.memory_loss_per_s},
       {"available_bytes", static_cast<double>(*host.available_memory)},
       {"left_s", left_s}},
      "keep the dataset's index in arrays (NumPy, Arrow) instead of lists and dicts of Python objects, which "
      "every worker process copies page by page as it counts references; fewer workers; look for a cache "
      "that only grows"};
}

std::optional<Risk> stuck_worker(const profile::Profile& profile, const RiskThresholds& thresholds) {
  const profile::OperatorProfile* of = nullptr;
  const profile::WorkerProfile* stuck = nullptr;
  for (const profile::OperatorProfile& op : profile.operators) {
    for (const profile::WorkerProfile& worker : op.per_worker) {
      const double now_s = worker.current_item_s.value_or(0);
      if (now_s < thresholds.stuck_s || now_s < thresholds.stuck_times * op.service.max_s) continue;
      if (stuck != nullptr && now_s <= *stuck->current_item_s) continue;
      of = &op;
      stuck = &worker;
    }
  }
  if (stuck == nullptr) return std::nullopt;
  return Risk{RiskKind::stuck_worker,
              "a worker of " + of->name + " (" + stuck->name + ", process " + std::to_string(stuck->pid) +
                  ") has been at its item " + std::to_string(stuck->items) + " for " +
                  duration(*stuck->current_item_s) + "; the longest before took " +
                  duration(of->service.max_s) + (stuck->waits_in.empty() ? "" : "; it " + stuck->waits_in),
              {{"pid", static_cast<double>(stuck->pid)},
               {"tid", static_cast<double>(stuck->tid)},
               {"item", static_cast<double>(stuck->items)},
               {"current_item_s", *stuck->current_item_s}},
              "py-spy dump --pid " + std::to_string(stuck->pid) +
                  " shows where; a timeout around remote reads ends such an item"};
}

std::optional<Risk> start_up(const profile::Profile& profile, const RiskThresholds& thresholds) {
  const double started_s = profile.startup.first_batch_s + profile.startup.later_epochs_s;
  const double whole_s = started_s + profile.elapsed_s;
  if (started_s < thresholds.startup_s || started_s < thresholds.startup_share * whole_s) return std::nullopt;
  if (starts_for_every_batch(profile, GateThresholds{})) return std::nullopt;  // the verdict says it
  const FirstDraw draw = first_draw_of(profile, started_s);
  const double workers_s = profile.startup.worker_start_s * static_cast<double>(profile.epochs);
  const std::string little =
      workers_s > 0 ? "workers that stay would save little, their starts took " + duration(workers_s) + ": "
                    : "";
  const std::string cure =
      workers_s > 0 && 2 * workers_s >= started_s
          ? "workers that stay between epochs" +
                named(parameter_of(profile, profile::Quantity::keeps_workers)) + ", fewer imports in workers"
          : little +
                "an index that is loaded once, a shuffle buffer that gives its first sample "
                "before it is full (a small initial)";
  return Risk{RiskKind::startup,
              "waiting for the first batches of " + counted(static_cast<double>(profile.epochs), "epoch") +
                  " took " + duration(started_s) + " of " + duration(whole_s) + " (" +
                  percent(started_s / whole_s) + "); no other figure contains it" +
                  (draw.sampler.empty() ? ""
                                        : "; " + draw.sampler + " takes " + duration(draw.seconds) +
                                              " in each of them to draw the order"),
              {{"startup_s", started_s}, {"whole_s", whole_s}},
              draw.sampler.empty() ? cure : cure_of(draw)};
}

std::optional<Risk> gc_pause(const profile::Profile& profile, const RiskThresholds& thresholds) {
  const double share = ratio(profile.sink.gc_s, profile.sink.step_s);
  if (share < thresholds.collection_share) return std::nullopt;
  return Risk{RiskKind::gc_pause,
              "Python's garbage collector takes " + duration(profile.sink.gc_s) + " of " +
                  duration(profile.sink.step_s) + " (" + percent(share) +
                  ") in the training loop's own thread",
              {{"gc_s", profile.sink.gc_s}, {"step_s", profile.sink.step_s}},
              kCollectLess};
}

using Judge = std::optional<Risk> (*)(const profile::Profile&, const RiskThresholds&);
/// In the order of RiskKind.
constexpr std::array<Judge, names_of(RiskKind{}).size()> kRisks{shared_memory, memory_growth, stuck_worker,
                                                                start_up, gc_pause};

}  // namespace

std::vector<Risk> risks_of(const profile::Profile& profile, const RiskThresholds& thresholds) {
  std::vector<Risk> risks;
  for (const Judge judge : kRisks) {
    if (std::optional<Risk> risk = judge(profile, thresholds)) risks.push_back(std::move(*risk));
  }
  return risks;
}

}  // namespace headrace::analysis
