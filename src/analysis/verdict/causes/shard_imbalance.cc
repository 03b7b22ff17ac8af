// Workers of a stream have no data left, or none at all, while others still work.
#include <algorithm>

#include "sentences.h"

namespace headrace::analysis {

std::optional<Finding> judge_shard_imbalance(const Case& facts) {
  if (facts.candidate < 0 || !facts.loader || !facts.loader->stream || facts.loader->workers < 2)
    return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  const profile::WorkerProfile* longest = nullptr;
  double out_s = 0;
  double least_s = facts.profile.elapsed_s;
  int without = 0;
  std::size_t workers = 0;
  for (const profile::WorkerProfile& worker : op.per_worker) {
    if (!worker.worker_id) continue;
    ++workers;
    out_s += worker.out_of_data_s;
    least_s = std::min(least_s, worker.out_of_data_s);
    without += worker.items == 0 ? 1 : 0;
    if (longest == nullptr || worker.out_of_data_s > longest->out_of_data_s) longest = &worker;
  }
  // A worker that never made an item has no row; those of earlier epochs have no number.
  const auto all = static_cast<std::size_t>(facts.loader->workers);
  const bool all_numbered =
      std::all_of(op.per_worker.begin(), op.per_worker.end(),
                  [](const profile::WorkerProfile& worker) { return worker.worker_id.has_value(); });
  const std::size_t absent = all_numbered && workers < all ? all - workers : 0;
  workers += absent;
  without += static_cast<int>(absent);
  out_s += static_cast<double>(absent) * facts.profile.elapsed_s;
  if (workers < 2 || longest == nullptr) return std::nullopt;
  // At the end of an epoch all of them are out of data, while the loop takes the last batches.
  out_s -= least_s * static_cast<double>(workers);
  const double share = ratio(out_s, facts.profile.elapsed_s * static_cast<double>(workers));
  if (share < facts.thresholds.shards.out_of_data_share) return std::nullopt;
  Finding finding;
  finding.headline = "workers of the stream run out of data while others still work";
  finding.evidence = cause_evidence(
      "workers had no data left for " + percent(share) + " of their time" +
          (longest->out_of_data_s > 0 ? ", " + longest->name + " for " + duration(longest->out_of_data_s) +
                                            " of " + duration(facts.profile.elapsed_s)
                                      : "") +
          (without > 0 ? "; " + counted(without, "worker") + " never had any" : ""),
      {{"out_of_data_share", share},
       {"longest_s", longest->out_of_data_s},
       {"workers_without_items", static_cast<double>(without)}});
  finding.advice.push_back(in_words(
      without > 0
          ? "split the data into at least " + as_written(static_cast<double>(workers)) + " shards, or use " +
                counted(static_cast<double>(workers) - without, "worker")
          : "make the shards equally large, or more and smaller, so that each worker gets the same amount"));
  return finding;
}

}  // namespace headrace::analysis
