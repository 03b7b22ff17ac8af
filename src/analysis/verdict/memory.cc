#include "headrace/analysis/verdict/memory.h"

#include <algorithm>

#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/verdict/advice.h"

namespace headrace::analysis {
namespace {

/// Places for whole batches that a change of a pipeline's queue adds; 0 for queues of smaller items, whose
/// size was never recorded.
double more_places(const profile::Profile& profile, const Change& change) {
  if (change.kind == Change::Kind::kPrefetch) return change.to;
  if (change.kind != Change::Kind::kCapacity || change.index < 0 ||
      static_cast<std::size_t>(change.index) >= profile.queues.size()) {
    return 0;
  }
  const profile::QueueProfile& queue = profile.queues[static_cast<std::size_t>(change.index)];
  return queue.to_sink ? change.to - static_cast<double>(queue.capacity) : 0;
}

}  // namespace

std::optional<double> more_memory(const profile::Profile& profile, const std::vector<Change>& changes) {
  if (!profile.sink.batch_bytes) return std::nullopt;
  double places = 0;
  if (const std::optional<Loader> loader = loader_of(profile)) {
    double workers = loader->workers;
    double each = loader->per_worker;
    for (const Change& change : changes) {
      if (change.kind == Change::Kind::kWorkers) workers = change.to;
      if (change.kind == Change::Kind::kWindow) each = change.to;
    }
    places = workers * each - loader->window();
  } else {
    for (const Change& change : changes) places += more_places(profile, change);
  }
  if (places == 0) return std::nullopt;
  return places * static_cast<double>(*profile.sink.batch_bytes);
}

}  // namespace headrace::analysis
