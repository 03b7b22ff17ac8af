#include "support/simulation/labelled_loaders.h"

#include <algorithm>
#include <cmath>

#include "support/simulation/draws.h"

namespace headrace::simulation {
namespace {

bool maybe(Random& random) { return among(random, 0, 1) == 1; }

const char* const kDatasets[] = {"ImageFolder", "Clips", "WebText", "MyDataset", "Subset"};
const char* const kCollates[] = {"default_collate", "pad_batch", "collate_fn"};

/// Workers that sleep a little, of `busy` of what would keep the sink waiting.
DataLoader fast_loader(Random& random, double compute_s, double busy = 0.3) {
  DataLoader loader;
  loader.num_workers = among(random, 1, 8);
  loader.prefetch_factor = among(random, 2, 8);
  loader.batch_size = among(random, 1, 16);
  loader.stream = among(random, 0, 3) == 0;
  loader.compute_s = compute_s;
  loader.cores = among(random, 2, 16);
  const double item_s = busy * compute_s * loader.num_workers / loader.batch_size;
  loader.parts = {{.name = kDatasets[among(random, 0, 4)], .sleep_s = item_s},
                  {.name = kCollates[among(random, 0, 2)], .cpu_s = 1e-4, .per_batch = true}};
  return loader;
}

/// The dataset takes `pressure` x the training step per batch, with all workers.
void slow_dataset(DataLoader& loader, double pressure, double cpu_share) {
  const double item_s = pressure * loader.compute_s * std::max(1, loader.num_workers) / loader.batch_size;
  loader.parts.front().cpu_s = cpu_share * item_s;
  loader.parts.front().sleep_s = (1 - cpu_share) * item_s;
}

// Each draw is a statement of its own: compilers differ in the order in which they evaluate arguments.
DataLoader healthy_loader(Random& random) {
  const double pressure = between(random, 0.1, 0.6);
  const double compute_s = between(random, 0.01, 0.04);
  return fast_loader(random, compute_s, pressure);
}

LabelledLoader consumer(Random& random) { return {healthy_loader(random), kHealthy, "", ""}; }

LabelledLoader consumer_without_order(Random& random) {
  DataLoader loader = healthy_loader(random);
  loader.in_order = false;
  return {loader, kHealthy, "", ""};
}

LabelledLoader consumer_pure_python(Random& random) {  // its lock delays the hand-over, and nobody waits
  DataLoader loader = fast_loader(random, between(random, 0.06, 0.09), 0.1);
  loader.num_workers = 2;
  loader.cores = 4;
  loader.python = true;
  slow_dataset(loader, 0.15, 1);
  return {loader, kHealthy, "", ""};
}

LabelledLoader slow_start(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.01, 0.03));
  loader.first_item_s = between(random, 0.5, 2);
  loader.steps = static_cast<int>(3 * loader.first_item_s / loader.compute_s);
  return {loader, kHealthy, "", ""};
}

LabelledLoader startup(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.01, 0.02));
  loader.epochs = among(random, 4, 8);
  loader.epoch_start_s = between(random, 1.3, 2);
  return {loader, kHealthy, "", "startup", "persistent_workers"};
}

LabelledLoader transient(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.01, 0.02));
  loader.steps = among(random, 150, 300);
  Part& dataset = loader.parts.front();
  const auto at = static_cast<std::uint64_t>(loader.batch_size * among(random, 40, 110));
  dataset.factor = once(
      at, (between(random, 0.8, 2) + 0.02 * loader.prefetch_factor * loader.num_workers) / dataset.sleep_s);
  return {loader, kHealthy, "", "transient_stall"};
}

LabelledLoader without_workers(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.005, 0.02));
  loader.num_workers = 0;
  slow_dataset(loader, between(random, 0.4, 4), maybe(random) ? 0 : 1);
  return {loader, kBound, loader.parts.front().name, "no_overlap", "num_workers"};
}

LabelledLoader one_busy_worker(Random& random) {  // cpu_w1
  DataLoader loader = fast_loader(random, between(random, 0.005, 0.015));
  loader.num_workers = 1;
  loader.cores = among(random, 3, 16);
  slow_dataset(loader, between(random, 1.5, 4), 1);
  return {loader, kBound, loader.parts.front().name, "too_few_workers", "num_workers"};
}

LabelledLoader few_sleeping_workers(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.005, 0.02));
  loader.num_workers = among(random, 1, 6);
  slow_dataset(loader, between(random, 1.4, 3), 0.02);
  return {loader, kBound, loader.parts.front().name, "too_few_workers", "num_workers"};
}

LabelledLoader saturated_workers(Random& random) {  // cpu_w2
  DataLoader loader = fast_loader(random, between(random, 0.004, 0.008));
  loader.cores = among(random, 2, 4);
  loader.num_workers = loader.cores + among(random, 0, 4);
  loader.parts.front().cpu_s = between(random, 2.5, 4) * loader.compute_s * loader.cores / loader.batch_size;
  loader.parts.front().sleep_s = 0;
  return {loader, kBound, loader.parts.front().name, "cpu_saturated"};
}

LabelledLoader slow_collate(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.006, 0.015));
  loader.num_workers = among(random, 1, 2);
  loader.cores = among(random, 4, 16);
  Part& collate = loader.parts.back();
  loader.parts.front().sleep_s = 0.1 * loader.compute_s / loader.batch_size;
  collate.cpu_s = between(random, 1.8, 3) * loader.compute_s * loader.num_workers;
  return {loader, kBound, collate.name, "too_few_workers", "num_workers"};
}

LabelledLoader slow_transform(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.008, 0.015), 0.1);
  loader.num_workers = among(random, 1, 3);
  loader.cores = among(random, 5, 16);
  loader.batch_size = among(random, 2, 8);
  const char* const names[] = {"Resize", "GaussianBlur", "Normalize"};
  const int slow = among(random, 0, 2);
  slow_dataset(loader, 0.1, 0);
  const double item_s = between(random, 1.5, 3) * loader.compute_s * loader.num_workers / loader.batch_size;
  for (int i = 2; i >= 0; --i) {
    loader.parts.insert(loader.parts.begin() + 1,
                        Part{.name = names[i], .cpu_s = i == slow ? item_s : 0.06 * item_s});
  }
  return {loader, kBound, names[slow], "too_few_workers", "num_workers"};
}

LabelledLoader array_batches(Random& random) {  // handoff
  DataLoader loader = fast_loader(random, 0.005);
  loader.num_workers = 2;
  loader.cores = 2;
  loader.parts.front() = {.name = "Arrays", .sleep_s = 5e-4};
  loader.parts.back().cpu_s = between(random, 0.005, 0.02);
  loader.message_bytes = between(random, 2e7, 9e7);
  loader.pickle_cpu_s = loader.message_bytes * 5e-10;
  loader.receive_cpu_s = loader.message_bytes * 1.2e-9;
  loader.tensors = 0;
  return {loader, kBound, "handoff", "handoff", "-"};
}

LabelledLoader tiny(Random& random) {
  DataLoader loader = fast_loader(random, 1e-4);
  loader.num_workers = among(random, 1, 4);
  loader.cores = among(random, 2, 4);
  loader.compute_s = between(random, 1e-5, 2e-4);
  loader.parts.front() = {.name = "TensorDataset", .cpu_s = between(random, 1e-5, 4e-5) / loader.batch_size};
  loader.parts.back().cpu_s = 2e-5;
  loader.tick_s = 1e-5;
  loader.steps = 600;
  return {loader, kBound, "handoff", "handoff", "num_workers"};
}

LabelledLoader many_tensors(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.004, 0.006), 0.4);
  loader.num_workers = among(random, 2, 4);
  loader.tensors = among(random, 6, 12);
  loader.receive_cpu_s = 2e-4 * loader.tensors;
  loader.receive_latency_s = 5e-5 * loader.tensors;
  slow_dataset(loader, 0.6, 0);
  return {loader, kBound, "handoff", "handoff", "sharing_strategy"};
}

LabelledLoader rare_slow_samples(Random& random) {  // slow5
  DataLoader loader = fast_loader(random, between(random, 0.004, 0.008));
  loader.num_workers = among(random, 3, 6);
  loader.prefetch_factor = 2;
  loader.batch_size = among(random, 1, 2);
  loader.steps = 400;
  Part& dataset = loader.parts.front();
  dataset.sleep_s = 0.4 * loader.compute_s / loader.batch_size;
  const double slow_s = between(random, 0.15, 0.25);
  const double share = between(random, 0.03, 0.05);
  dataset.factor = rare(share / loader.batch_size, slow_s / dataset.sleep_s);
  return {loader, kBound, dataset.name, "slow_samples"};
}

LabelledLoader rare_slow_samples_hidden(Random& random) {  // the same, out of order and with enough workers
  LabelledLoader labelled = rare_slow_samples(random);
  labelled.loader.in_order = false;
  labelled.loader.num_workers = 8;
  labelled.loader.prefetch_factor = 6;
  labelled.loader.compute_s *= 1.6;
  return {labelled.loader, kHealthy, "", ""};
}

LabelledLoader pure_python_dataset(
    Random& random) {  // pycpu: full results and a long floor, and still too few workers
  DataLoader loader = fast_loader(random, between(random, 0.006, 0.012));
  loader.num_workers = among(random, 1, 2);
  loader.cores = among(random, 4, 16);
  loader.python = true;
  slow_dataset(loader, 1, 1);
  loader.parts.front().cpu_s = between(random, 0.035, 0.05) * loader.num_workers / loader.batch_size;
  return {loader, kBound, loader.parts.front().name, "too_few_workers", "num_workers"};
}

LabelledLoader varying_samples(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.008, 0.015));
  loader.num_workers = among(random, 1, 3);
  loader.prefetch_factor = 2;
  loader.batch_size = 1;
  loader.steps = 400;
  slow_dataset(loader, between(random, 0.84, 0.92), 0);
  loader.parts.front().factor = exponential();
  return {loader, kBound, loader.parts.front().name, "variance", "prefetch_factor"};
}

LabelledLoader slow_worker(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.008, 0.015));
  loader.num_workers = among(random, 3, 6);
  loader.stream = maybe(random);
  slow_dataset(loader, 0.6, 0);
  loader.worker_times.assign(static_cast<std::size_t>(loader.num_workers), 1);
  loader.worker_times[static_cast<std::size_t>(among(random, 0, loader.num_workers - 1))] =
      between(random, 2.5, 4);
  return {loader, kBound, loader.parts.front().name, "slow_worker", "-"};
}

LabelledLoader alternating(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.008, 0.012));
  loader.num_workers = among(random, 1, 2);
  loader.prefetch_factor = 2;
  loader.batch_size = 4;
  loader.steps = 240;
  const auto length = static_cast<std::uint64_t>(among(random, 30, 50));
  const double slow_s = between(random, 2.5, 3.5) * loader.compute_s * loader.num_workers;
  loader.parts.front().sleep_s = slow_s / loader.batch_size;
  loader.parts.front().factor =
      in_turn(length * static_cast<std::uint64_t>(loader.batch_size), 1, 0.05, false);
  loader.parts.back().cpu_s = 0;
  loader.parts.back().sleep_s = slow_s;
  loader.parts.back().factor = in_turn(length, 1, 0.05, true);
  return {loader, {"input_bound", "intermittent"}, "", "alternating"};
}

LabelledLoader slow_sampler(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.006, 0.012));
  loader.num_workers = among(random, 2, 6);
  loader.sampler_s = between(random, 0.5, 2) * loader.compute_s;
  loader.cores = among(random, 4, 8);
  return {loader, kBound, "RandomSampler", "serial_operator", "-"};
}

LabelledLoader slow_pinning(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.006, 0.012));
  loader.num_workers = among(random, 2, 6);
  loader.cores = among(random, 4, 16);
  loader.pin_s = between(random, 1.4, 2.5) * loader.compute_s;
  return {loader, kBound, "pin_memory", "transfer", "-"};
}

LabelledLoader quick_pinning(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.01, 0.03));
  loader.cores = among(random, 4, 16);
  loader.pin_s = between(random, 0.1, 0.3) * loader.compute_s;
  return {loader, kHealthy, "", ""};
}

LabelledLoader copying(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.015, 0.03));
  loader.copy_s = between(random, 0.35, 0.7) * loader.compute_s;
  return {loader, kBound, "to_device", "transfer", "-"};
}

LabelledLoader copying_a_little(Random& random) {
  DataLoader loader = fast_loader(random, between(random, 0.015, 0.03));
  loader.copy_s = between(random, 0.01, 0.1) * loader.compute_s;
  return {loader, kHealthy, "", ""};
}

}  // namespace

const std::vector<LoaderClass>& loader_classes() {
  static const std::vector<LoaderClass> classes{
      {"consumer", consumer},
      {"consumer_without_order", consumer_without_order},
      {"consumer_pure_python", consumer_pure_python},
      {"slow_start", slow_start},
      {"startup", startup},
      {"transient", transient},
      {"without_workers", without_workers},
      {"one_busy_worker", one_busy_worker},
      {"few_sleeping_workers", few_sleeping_workers},
      {"saturated", saturated_workers},
      {"slow_collate", slow_collate},
      {"slow_transform", slow_transform},
      {"array_batches", array_batches},
      {"tiny", tiny},
      {"many_tensors", many_tensors},
      {"rare_slow", rare_slow_samples},
      {"rare_slow_hidden", rare_slow_samples_hidden},
      {"pure_python", pure_python_dataset},
      {"varying", varying_samples},
      {"slow_worker", slow_worker},
      {"alternating", alternating},
      {"slow_sampler", slow_sampler},
      {"slow_pinning", slow_pinning},
      {"quick_pinning", quick_pinning},
      {"copying", copying},
      {"copying_a_little", copying_a_little},
  };
  return classes;
}

}  // namespace headrace::simulation
