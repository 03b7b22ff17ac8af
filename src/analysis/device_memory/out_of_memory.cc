#include "headrace/analysis/device_memory/out_of_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "analysis/device_memory/device_state.h"
#include "analysis/device_memory/fragmentation_of.h"
#include "analysis/device_memory/marked_steps.h"
#include "analysis/device_memory/places.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device_memory {
namespace {

/// More than the contexts and libraries of one process take beside its allocator.
constexpr std::int64_t kContextBytes = std::int64_t{1} << 30;

/// "48 MiB", "1.5 GiB"
std::string size_text(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.4g} {}", bytes, kUnits[unit]);
}
std::string size_text(std::int64_t bytes) { return size_text(static_cast<double>(bytes)); }

/// A request that failed, and what its device had then.
struct Failure {
  std::int64_t requested = 0;
  std::int64_t free = -1;  ///< -1: unknown
  std::int64_t reserved = 0;
  std::int64_t inactive = 0;
  std::int64_t private_inactive = 0;
  std::int64_t largest_inactive = -1;  ///< -1: unknown
  std::int64_t others = -1;            ///< -1: unknown
};

Failure failure_at(const memory::Snapshot& snapshot, const DeviceState& device, std::uint32_t at,
                   const OutOfMemoryOptions& options) {
  const memory::Events& events = snapshot.events;
  const Reserved last = fragmentation_of(snapshot, device);
  Failure failure{events.size[at],
                  events.address[at],
                  reserved_after(snapshot, device, at),
                  last.inactive,
                  last.private_inactive,
                  last.largest_inactive,
                  -1};
  std::int64_t active_since = 0;
  bool changed = false;
  for (std::uint32_t row = at + 1; row < device.end(); ++row) {
    const memory::Action action = events.action[row];
    if (action == memory::Action::alloc) active_since += events.size[row];
    if (action == memory::Action::free_completed) active_since -= events.size[row];
    changed |= action == memory::Action::alloc || action == memory::Action::free_completed ||
               reserved_by(events, row) != 0;
  }
  if (changed) {
    failure.inactive = std::max<std::int64_t>(0, failure.reserved - (last.active - active_since));
    failure.largest_inactive = -1;
  }
  if (options.device_bytes > 0 && failure.free >= 0)
    failure.others = std::max<std::int64_t>(0, options.device_bytes - failure.reserved - failure.free);
  return failure;
}

struct Verdict {
  const char* name;
  std::string says;
  const char* cure;
};

const char* cure_of_fragmentation(const memory::Snapshot& snapshot, const Failure& failure) {
  if (failure.inactive - failure.private_inactive < failure.requested)
    return "most of it is in private pools, which no other allocation can use: let CUDA graphs share one "
           "pool, "
           "or capture fewer of them";
  if (snapshot.expandable_segments)
    return "expandable segments are on already: keep sizes the same from step to step (pad to a few "
           "lengths), or "
           "call torch.cuda.empty_cache() before the large request";
  return "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
}

Verdict verdict_of(const memory::Snapshot& snapshot, const Failure& failure) {
  const std::string asked = size_text(failure.requested) + " asked, ";
  if (failure.inactive >= failure.requested) {
    const std::string pieces =
        failure.largest_inactive < 0 ? "" : " in pieces of at most " + size_text(failure.largest_inactive);
    return {"fragmentation", asked + size_text(failure.inactive) + " inactive" + pieces,
            cure_of_fragmentation(snapshot, failure)};
  }
  if (failure.others - kContextBytes >= failure.requested) {
    return {"another process",
            asked + size_text(failure.others) + " of the device held outside of this process's allocator",
            "nvidia-smi lists the processes of the device: end them, or run on a free device"};
  }
  const std::string unreserved =
      failure.free < 0 ? "" : " and " + size_text(failure.free) + " free on the device";
  return {"too much",
          asked + size_text(failure.inactive) + " inactive" + unreserved + ", " +
              size_text(failure.reserved) + " reserved",
          "hold less: a smaller batch, activation checkpointing, sharded states; holders() names who holds "
          "the peak"};
}

double or_none(std::int64_t bytes) { return bytes < 0 ? device::kNoFigure : static_cast<double>(bytes); }

}  // namespace

Table out_of_memory(const memory::Snapshot& snapshot, const OutOfMemoryOptions& options) {
  constexpr std::size_t kMaxRows = 1000;  // each needs a pass over the events
  const memory::Events& events = snapshot.events;
  Rows<OutOfMemoryColumns> rows;
  Places places(snapshot);
  std::size_t left_out = 0;
  for (const DeviceState& device : devices_of(snapshot)) {
    const std::vector<MarkedStep> steps = marked_steps(snapshot, device.number);
    for (std::uint32_t row = device.events.first; row < device.end(); ++row) {
      if (events.action[row] != memory::Action::oom) continue;
      if (rows.size() == kMaxRows) {
        ++left_out;
        continue;
      }
      const Failure failure = failure_at(snapshot, device, row, options);
      const Verdict verdict = verdict_of(snapshot, failure);
      rows.add(device.number, row - device.events.first, events.time_us[row] * 1000,
               step_at(steps, events.time_us[row]), failure.requested, or_none(failure.free),
               failure.reserved, failure.inactive, or_none(failure.largest_inactive), or_none(failure.others),
               verdict.name, verdict.says, verdict.cure, places.label(places.of_stack(events.stack[row])));
    }
  }
  if (rows.size() == 0) rows.note("no request failed in the recording");
  if (left_out > 0) rows.note(std::to_string(left_out) + " more failed requests are left out");
  return rows.take();
}

}  // namespace headrace::analysis::device_memory
