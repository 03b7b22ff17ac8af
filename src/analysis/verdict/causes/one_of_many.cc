// One worker, rank, lock, collector or item holds up the others. docs/verdicts/one_of_many.md
#include <algorithm>
#include <cmath>
#include <vector>

#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/read/shared_waits.h"
#include "headrace/analysis/verdict/loader_advice.h"
#include "headrace/profile/profile.h"
#include "sentences.h"

namespace headrace::analysis {
namespace {

// --- slow_worker ---

struct Slow {
  const profile::WorkerProfile* worker = nullptr;
  std::size_t siblings = 0;
  double mean_s = 0;
  double siblings_mean_s = 0;
};

/// The spread of one worker's own items. The operator's would contain the difference that is looked for.
double own_cv(const profile::WorkerProfile& worker) {
  profile::OperatorProfile alone;
  alone.service = worker.service;
  alone.per_worker.push_back(worker);
  // Short runs of even items show less than there is.
  return std::max(kHardly, shape_of(alone).cv);
}

std::optional<Slow> slow_among(const std::vector<profile::WorkerProfile>& workers,
                               const WorkerThresholds& thresholds) {
  std::vector<const profile::WorkerProfile*> judged;
  for (const profile::WorkerProfile& worker : workers) {
    if (static_cast<double>(worker.items) >= thresholds.fewest_items && worker.service.mean_s > 0)
      judged.push_back(&worker);
  }
  if (judged.size() < 2) return std::nullopt;
  const auto slowest = std::max_element(judged.begin(), judged.end(), [](const auto* a, const auto* b) {
    return a->service.p50_s < b->service.p50_s;
  });
  Slow slow;
  slow.worker = *slowest;
  slow.mean_s = slow.worker->service.mean_s;
  double busy = 0;
  double items = 0;
  double variance = std::pow(own_cv(*slow.worker) * slow.mean_s, 2) / static_cast<double>(slow.worker->items);
  for (const profile::WorkerProfile* worker : judged) {
    if (worker == slow.worker) continue;
    busy += worker->service.mean_s * static_cast<double>(worker->items);
    items += static_cast<double>(worker->items);
  }
  slow.siblings = judged.size() - 1;
  slow.siblings_mean_s = busy / items;
  variance += std::pow(own_cv(*judged[slow.worker == judged[0] ? 1 : 0]) * slow.siblings_mean_s, 2) / items;
  const bool slower = slow.mean_s >= thresholds.slower * slow.siblings_mean_s;
  const bool beyond = slow.mean_s - slow.siblings_mean_s >= thresholds.beyond_chance * std::sqrt(variance);
  return slower && beyond ? std::optional(slow) : std::nullopt;
}

/// "worker 2 (part 3 of 4 of the stream)"
std::string called(const profile::WorkerProfile& worker) {
  const std::string name = worker.worker_id ? std::to_string(*worker.worker_id) : worker.name;
  return "worker " + name + (worker.shard.empty() ? "" : " (part " + worker.shard + " of the stream)");
}

// --- slow_rank ---

/// Largest demands of the other ranks, ascending, without those of ranks with too few steps to judge.
std::vector<double> other_demands(const profile::Profile& profile, const Thresholds& thresholds) {
  std::vector<double> demands_s;
  for (const profile::RankFigures& other : profile.ranks) {
    if (static_cast<double>(other.steps) >= thresholds.gate.fewest_steps && other.demand_s > 0)
      demands_s.push_back(other.demand_s);
  }
  std::sort(demands_s.begin(), demands_s.end());
  return demands_s;
}

// --- slow_samples ---

std::string listed(const profile::OperatorProfile& op) {
  std::vector<profile::ServiceSample> slowest;
  for (const profile::WorkerProfile& worker : op.per_worker) {
    slowest.insert(slowest.end(), worker.slowest.begin(), worker.slowest.end());
  }
  std::sort(
      slowest.begin(), slowest.end(),
      [](const profile::ServiceSample& a, const profile::ServiceSample& b) { return a.wall_s > b.wall_s; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, slowest.size()); ++i) {
    text += (i == 0 ? " (slowest: item " : ", item ") + std::to_string(slowest[i].index) + " " +
            duration(slowest[i].wall_s);
  }
  return text.empty() ? text : text + ")";
}

/// Items that find no core, or the interpreter lock taken, are slow, whatever is in them. (The first product: what slow
/// items take more than usual ones, of the busy time.)
bool others_slow_them(const profile::OperatorProfile& op, const ServiceShape& shape,
                      const TailThresholds& thresholds) {
  const double excess = shape.tail_busy_share * (1 - ratio(shape.median_s, shape.tail_mean_s));
  const double waits_s = op.run_queue_wait_s.value_or(0) + op.lock_wait_s.value_or(0);
  return ratio(waits_s, op.busy_s) >= thresholds.waits * excess;
}

/// Without them, the wait is mostly gone; where that cannot be simulated, the time in them comes to most of it.
bool explain_the_wait(const Case& facts, const ServiceShape& shape, const Prediction& usual) {
  if (usual.known && facts.interventions.known())
    return facts.interventions.gain_of(usual.step_s) >= kMostOf * facts.interventions.gain_of_all();
  const double slow_s = facts.op().demand_s * shape.tail_busy_share * facts.op().workers;
  return slow_s >= kMostOf * facts.gate.starved_share * facts.gate.step_s;
}

}  // namespace

/// One worker is slower than its siblings, by more than chance.
std::optional<Finding> judge_slow_worker(const Case& facts) {
  if (facts.candidate < 0) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  const auto slow = slow_among(op.per_worker, facts.thresholds.worker);
  if (!slow) return std::nullopt;
  const double times = slow->mean_s / slow->siblings_mean_s;
  char factor[32];
  std::snprintf(factor, sizeof factor, "%.1f", times);
  Finding finding;
  finding.headline = "one worker of " + op.name + " is " + factor + " times slower than the others";
  finding.evidence = cause_evidence(
      called(*slow->worker) + " takes " + duration(slow->mean_s) + " an item, its " +
          counted(static_cast<double>(slow->siblings), "sibling") + " " + duration(slow->siblings_mean_s),
      {{"worker_mean_s", slow->mean_s}, {"siblings_mean_s", slow->siblings_mean_s}, {"times", times}});
  Advice advice = in_words("look at " + called(*slow->worker) + " of " + op.name +
                           ": its storage, its core, its share of the data");
  const Prediction alike = facts.predictor.predict({{Change::Kind::kAlike, facts.candidate, 1, 1}});
  finding.advice.push_back(with_prediction(std::move(advice), facts.gate.step_s, alike));
  return finding;
}

/// One rank's input is slower than that of its siblings; where ranks meet at every step, all of them wait for
/// it.
std::optional<Finding> judge_slow_rank(const Case& facts) {
  if (facts.candidate < 0 || facts.gate.starved_share < facts.thresholds.gate.starved_share)
    return std::nullopt;
  const std::vector<int>& slow = facts.profile.slow_ranks;
  if (std::find(slow.begin(), slow.end(), facts.profile.rank) == slow.end()) return std::nullopt;
  const std::vector<double> demands_s = other_demands(facts.profile, facts.thresholds);
  if (demands_s.empty()) return std::nullopt;
  const double elsewhere_s = demands_s[(demands_s.size() - 1) / 2];
  const double own_s = profile::rank_figures(facts.profile).demand_s;
  // Its step is slow, but not by its input.
  if (own_s <= elsewhere_s) return std::nullopt;

  const std::string rank = "rank " + std::to_string(facts.profile.rank);
  const std::string& op = facts.op().name;
  const std::string others = counted(static_cast<double>(demands_s.size()), "other rank");
  Finding finding;
  finding.headline = rank + " loads more slowly than the others: " + op + " needs " + duration(own_s) +
                     " a step there, " + duration(elsewhere_s) + " elsewhere";
  finding.evidence =
      cause_evidence(op + " needs " + duration(own_s) + " a step in " + rank + "; in the " + others +
                         " the slowest operator needs " + duration(elsewhere_s) + " (median)",
                     {{"rank", static_cast<double>(facts.profile.rank)},
                      {"demand_s", own_s},
                      {"others_demand_s", elsewhere_s},
                      {"others", static_cast<double>(demands_s.size())}});
  Advice advice =
      in_words("look at what " + rank +
               " has of its own: its storage, its cores and neighbours, its share of the data; as "
               "fast as the others it would not be waited for");
  const Prediction then =
      facts.predictor.predict({{Change::Kind::kService, facts.candidate, 1, elsewhere_s / own_s}});
  finding.advice.push_back(with_prediction(std::move(advice), facts.gate.step_s, then));
  for (Advice& row : advise_workers(facts.predictor, facts.candidate)) {
    finding.advice.push_back(std::move(row));
  }
  return finding;
}

/// Memory is short: the kernel takes pages away that are needed again, or holds processes back.
std::optional<Finding> judge_memory_pressure(const Case& facts) {
  const profile::Host& host = facts.profile.host;
  if (facts.candidate < 0 || !host.memory_pressure_share ||
      *host.memory_pressure_share < facts.thresholds.memory.pressure_share)
    return std::nullopt;
  // A body that always computes does not wait for memory.
  const double computes = std::max(0.0, cpu_bound_share(facts.op()));
  if (computes >= kMostOf && host.swapped_in_bytes.value_or(0) <= 0) return std::nullopt;
  Finding finding;
  finding.headline = "memory is short";
  std::string says = "tasks waited for memory " + percent(*host.memory_pressure_share) + " of the time";
  if (host.refaulted_bytes.value_or(0) > 0)
    says +=
        "; " + memory_size(*host.refaulted_bytes) + " were read again after the page cache had to drop them";
  if (host.swapped_in_bytes.value_or(0) > 0)
    says += "; " + memory_size(*host.swapped_in_bytes) + " came back from swap";
  finding.evidence =
      cause_evidence(std::move(says), {{"memory_pressure_share", *host.memory_pressure_share},
                                       {"refaulted_bytes", host.refaulted_bytes.value_or(0)},
                                       {"swapped_in_bytes", host.swapped_in_bytes.value_or(0)}});
  finding.advice.push_back(in_words(
      "give the run more memory, or let it use less: fewer workers, a smaller prefetch, arrays instead of "
      "Python objects in the dataset, other processes elsewhere"));
  return finding;
}

/// The operator's workers queue for one lock: more of them gain nothing.
std::optional<Finding> judge_shared_resource(const Case& facts) {
  if (facts.candidate < 0 || facts.op().workers < 2) return std::nullopt;
  const double waits = lock_share(facts.op());
  if (waits < facts.thresholds.shared_lock.lock_share) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  // A worker that joins threads of its own, which compute meanwhile, acquires a lock too, but none that the workers share.
  const WorkerProcesses processes = worker_processes(facts.profile);
  if (processes.cpu_s - processes.in_workers_s >= kMostOf * waits * op.busy_s) return std::nullopt;
  Finding finding;
  finding.headline = op.name + "'s workers queue for one lock";
  finding.evidence =
      cause_evidence(op.name + " spends " + percent(waits) + " of its time acquiring a lock that its " +
                         as_written(op.workers) + " workers share, so one of them reads at a time",
                     {{"lock_share", waits}, {"workers", static_cast<double>(op.workers)}});
  finding.advice.push_back(with_shorter_items(
      facts,
      in_words("give each worker a handle (file, connection, reader) of its own instead of the "
               "lock, or hold the lock for less; more workers gain nothing; predicted: without "
               "the waits for the lock"),
      waits));
  return finding;
}

/// Python's garbage collector stops the operator, or the loop inside GetNext.
std::optional<Finding> judge_gc_pause(const Case& facts) {
  if (facts.candidate < 0) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  double gc_s = 0;
  for (const profile::WorkerProfile& worker : op.per_worker) gc_s += worker.gc_s;
  // The collections of the threads, whatever they ran: operators that share the threads share them.
  double busy_s = op.busy_s;
  if (const SegmentDemand* segment = facts.demand.of(facts.candidate)) {
    busy_s = 0;
    for (int i : segment->operators) busy_s += facts.profile.operators[static_cast<std::size_t>(i)].busy_s;
  }
  const double share = std::min(1.0, ratio(gc_s, busy_s));
  if (!facts.held_up_by(share)) return std::nullopt;
  Finding finding;
  finding.headline = "Python's garbage collector stops " + op.name;
  finding.evidence =
      cause_evidence("the threads of " + op.name + " spend " + percent(share) +
                         " of their busy time in Python's garbage collector (" + duration(gc_s) + " in all)",
                     {{"gc_share", share}, {"gc_s", gc_s}});
  Advice advice = in_words(
      "call gc.freeze() once the dataset is loaded (in worker_init_fn for workers), or gc.disable() there "
      "and "
      "gc.collect() between epochs; keep large indices in arrays, not in lists of Python objects");
  finding.advice.push_back(with_shorter_items(facts, std::move(advice), share));
  return finding;
}

/// Delivery waits for rare items of another kind; the usual items would be fast enough.
std::optional<Finding> judge_slow_samples(const Case& facts) {
  if (facts.candidate < 0 || facts.lock.contended || facts.intermittent) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  const ServiceShape& shape = facts.shapes[static_cast<std::size_t>(facts.candidate)];
  // An opaque loader's own waits come in bursts; that says nothing about its items.
  if (!shape.heavy_tailed(facts.thresholds.tail) || op.fidelity == profile::Fidelity::inclusive ||
      others_slow_them(op, shape, facts.thresholds.tail))
    return std::nullopt;
  const Prediction usual = facts.predictor.predict({{Change::Kind::kUsual, facts.candidate, 1, 1}});
  if (!explain_the_wait(facts, shape, usual)) return std::nullopt;
  Finding finding;
  finding.headline = "delivery waits for rare slow items in " + op.name;
  finding.evidence =
      cause_evidence(percent(shape.tail_item_share) + " of the items take " + duration(shape.tail_mean_s) +
                         ", the usual one " + duration(shape.median_s) + "; they are " +
                         percent(shape.tail_busy_share) + " of " + op.name + "'s work",
                     {{"slow_item_share", shape.tail_item_share},
                      {"slow_mean_s", shape.tail_mean_s},
                      {"median_s", shape.median_s},
                      {"slow_busy_share", shape.tail_busy_share}});
  if (facts.loader) {
    if (std::optional<Advice> advice = advise_any_order(*facts.loader, facts.predictor)) {
      finding.advice.push_back(std::move(*advice));
    }
  }
  for (Advice& advice : advise_capacity(facts.predictor, facts.candidate)) {
    finding.advice.push_back(std::move(advice));
  }
  Advice fix = in_words("make the slow items as cheap as the others, or leave them out" + listed(op));
  finding.advice.push_back(with_prediction(std::move(fix), facts.gate.step_s, usual));
  return finding;
}

}  // namespace headrace::analysis
