// Slow links between ranks: bandwidth and latency of pairs and groups beside others of their kind.
//
//     const Links found = judge_links(records);
//     for (const Link& link : found.links) if (link.slow) std::cout << link.members << ' ' << link.bandwidth_gbps;
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/analysis/cluster/link_records.h"

namespace headrace::analysis::cluster {

struct LinkThresholds {
  /// A link is slow below this share of the median bandwidth of links of its kind, ...
  double slow_share = 0.8;
  /// ... and by so many spreads (scaled median absolute deviation) of theirs. Of fewer than eight links, half
  /// of the median is enough.
  double spreads = 6;
  /// Fewer links of a kind show no median.
  std::size_t fewest = 3;
  /// Messages up to this size take as long as the link's latency; they count as slow at twice the median only.
  double latency_bytes = 64e3;
  double slow_latency = 2;
};

/// A pair or a group of ranks that communicates in one way.
struct Link {
  bool is_pair = false;
  std::string kind;     ///< "all_reduce", "HCCS"
  std::string members;  ///< as `ranks_text`; of a pair "3>5"
  double calls = 0;     ///< in a step
  double bytes = 0;     ///< in a step, over the busiest link
  double busy_s = 0;    ///< in a step, without waits for other ranks
  /// Bandwidth of the largest messages, GB/s (10^9 bytes); nothing if all are small.
  std::optional<double> bandwidth_gbps;
  /// Median of links of its kind whose messages are as large.
  std::optional<double> usual_gbps;
  /// Time of the smallest messages, if these are small; nothing for sums of transfers.
  std::optional<double> latency_s;
  std::optional<double> usual_latency_s;
  bool slow = false;
  /// Upper bound of the time a step would save if the link were as fast as the median of its kind.
  double excess_s = 0;
};

struct Links {
  std::vector<Link> links;  ///< slow ones first, by `excess_s`; then by `busy_s`
  std::size_t slow = 0;
  /// The rank that all slow links have in common, if there are two or more and it is the only one.
  std::optional<std::int64_t> common_rank;
  std::size_t unknown = 0;  ///< records of pairs whose ranks in the job are not known
};

/// Pure; thread-safe. Members of a group wait for each other, so the time of a collective is that of the rank
/// that records the shortest. Links of one kind: the same collective or transport, groups of the same size and
/// the same distances between ranks, messages within a factor of about three.
Links judge_links(std::span<const LinkRecord> records, const LinkThresholds& thresholds = {});

}  // namespace headrace::analysis::cluster
