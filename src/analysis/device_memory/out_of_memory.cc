#include "headrace/analysis/device_memory/out_of_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "analysis/device_memory/device_state.h"
#include "analysis/device_memory/marked_steps.h"
#include "analysis/device_memory/places.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device_memory {
namespace {

/// More than the contexts and libraries of one process take beside its allocator.
constexpr std::int64_t kContextBytes = std::int64_t{1} << 30;

constexpr std::int64_t kMaxDeviceBytes = std::int64_t{1} << 60;

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

/// By time. Goes back from the snapshot's state, so that each event is undone once.
std::vector<std::pair<std::uint32_t, Failure>> failures_of(const memory::Snapshot& snapshot,
                                                           const DeviceState& device,
                                                           const OutOfMemoryOptions& options) {
  const memory::Events& events = snapshot.events;
  const Reserved last = fragmentation_of(snapshot, device);
  Failure state{0, -1, last.reserved, last.inactive, last.private_inactive, last.largest_inactive, -1};
  std::int64_t active = last.active;
  std::vector<std::pair<std::uint32_t, Failure>> found;
  for (std::uint32_t row = device.end(); row-- > device.events.first;) {
    const memory::Action action = events.action[row];
    if (action == memory::Action::oom) {
      Failure& failure = found.emplace_back(row, state).second;
      failure.requested = events.size[row];
      failure.free = events.address[row];
      if (options.device_bytes > 0 && failure.free >= 0)
        failure.others = std::max<std::int64_t>(
            0, std::min(options.device_bytes, kMaxDeviceBytes) - failure.reserved - failure.free);
      continue;
    }
    const std::int64_t reserved = reserved_by(events, row);
    const bool is_alloc = action == memory::Action::alloc;
    if (!is_alloc && action != memory::Action::free_completed && reserved == 0) continue;
    if (is_alloc) active -= events.size[row];
    if (action == memory::Action::free_completed) active += events.size[row];
    state.reserved -= reserved;
    state.inactive = std::max<std::int64_t>(0, state.reserved - active);
    state.largest_inactive = -1;
  }
  std::reverse(found.begin(), found.end());
  return found;
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
  if (failure.free >= failure.requested) {
    return {"too much",
            asked + size_text(failure.free) + " free on the device: a limit of this process was reached",
            "raise the limit that torch.cuda.set_per_process_memory_fraction sets, or hold less"};
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
  const memory::Events& events = snapshot.events;
  Rows<OutOfMemoryColumns> rows;
  Places places(snapshot);
  const MarkedSteps steps(snapshot);
  for (const DeviceState& device : devices_of(snapshot)) {
    for (const auto& [row, failure] : failures_of(snapshot, device, options)) {
      const Verdict verdict = verdict_of(snapshot, failure);
      rows.add(device.number, row - device.events.first, events.time_us[row] * 1000,
               steps.at(device.number, events.time_us[row]), failure.requested, or_none(failure.free),
               failure.reserved, failure.inactive, or_none(failure.largest_inactive), or_none(failure.others),
               verdict.name, verdict.says, verdict.cure, places.label(places.of_stack(events.stack[row])));
    }
  }
  if (rows.size() == 0) rows.note("no request failed in the recording");
  return rows.take();
}

}  // namespace headrace::analysis::device_memory
