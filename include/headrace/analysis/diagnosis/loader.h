// A framework's loader with worker processes: how it is set, and which of the profile's operators play which
// part.
//
//     main: sampler -> index queues -> workers (source, maps, collate) -> results -> handoff -> [pin_memory]
//     -> reorder -> sink
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// A PyTorch DataLoader. Indices are into Profile::operators; below 0: there is none.
struct Loader {
  int num_workers = 0;  ///< 0: everything runs in the training loop
  int prefetch_factor = 2;
  bool in_order = true;
  bool persistent_workers = false;
  bool pin_memory = false;
  bool stream = false;  ///< an IterableDataset: each worker reads its own copy or part of it
  std::string sharing_strategy;
  std::string trainer;          ///< the framework that made it, "transformers"; "" where the user did
  std::string batch;            ///< class of its batches; "" where they are plain containers
  std::string device;           ///< where batches are copied to, where that is known
  std::vector<int> in_workers;  ///< dataset, transforms, collate: what moves with num_workers
  int sampler = -1;
  int handoff = -1;
  int pin = -1;
  int to_device = -1;

  /// Batches on their way at the same time.
  int window() const noexcept { return num_workers * prefetch_factor; }
};

/// Empty for every other loader.
std::optional<Loader> loader_of(const profile::Profile& profile);

/// The value of a setting; "" where it has none.
std::string setting(const profile::Profile& profile, std::string_view parameter);

/// Runs in the training step, not inside GetNext: its time is part of the sink's compute.
bool runs_in_step(const profile::Profile& profile, const profile::OperatorProfile& op);

/// Time per batch of all workers together that loading one batch takes: the sum over `in_workers`.
double work_per_batch_s(const profile::Profile& profile, const Loader& loader);

/// Making a batch needs a core most of the time, not storage or a network.
bool computes(const profile::Profile& profile, const Loader& loader);

}  // namespace headrace::analysis
