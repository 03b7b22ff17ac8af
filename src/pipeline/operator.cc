#include "headrace/pipeline/operator.h"

#include <algorithm>
#include <utility>

namespace headrace::pipeline {
namespace {

std::uint32_t flags_of(const OperatorSettings& its) noexcept {
  std::uint32_t flags = 0;
  if (its.serial) flags |= profile::kMarkedSerial;
  if (its.ordered && !its.serial) flags |= profile::kKeepsOrder;
  if (!its.serial && !its.fixed_workers) flags |= profile::kIsResizable;
  if (its.in_processes) flags |= profile::kRunsInProcesses;
  return flags;
}

}  // namespace

Operator::Operator(OperatorSettings settings, int stage)
    : settings_(std::move(settings)), stage_(stage), capacity_(settings_.capacity) {}

void Operator::record_in(int loader) {
  if (handle_ != nullptr) return;
  loader_ = loader;
  handle_ =
      std::make_shared<profile::OperatorHandle>(settings_.name, settings_.kind.text(), 0, flags_of(settings_),
                                                "", loader, static_cast<std::uint32_t>(stage_));
  if (!settings_.in_processes) return;
  // More workers hand over more at a time: the parameter is the operator's own.
  handoff_ = std::make_shared<profile::OperatorHandle>(settings_.name + ".handoff", "handoff", 0, 0,
                                                       settings_.name + ".workers", loader,
                                                       static_cast<std::uint32_t>(stage_));
}

std::int64_t default_capacity(int workers, bool of_batches) noexcept {
  const std::int64_t two_each = 2 * std::int64_t{workers};
  return of_batches ? two_each : std::max<std::int64_t>(16, two_each);
}

void check(const OperatorSettings& its) {
  const std::string which = its.kind.text() + " '" + its.name + "': ";
  if (its.name.empty()) throw UsageError(its.kind.text() + ": the operator needs a name");
  if (its.workers < 1 || its.workers > kMaxWorkers) {
    throw UsageError(which + "workers is 1 to " + std::to_string(kMaxWorkers) + ", not " +
                     std::to_string(its.workers));
  }
  if (its.capacity < 0 || its.capacity > queues::kMaxItems) {
    throw UsageError(which + "capacity is 1 to " + std::to_string(queues::kMaxItems) +
                     " items (0: chosen by Headrace), not " + std::to_string(its.capacity));
  }
}

}  // namespace headrace::pipeline
