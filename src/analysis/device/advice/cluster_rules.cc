// Ranks against each other: who is slow, and whose link.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "analysis/device/advice/rule.h"

namespace headrace::analysis::device {
namespace {

struct Range {
  std::int64_t lowest_rank = -1;
  std::int64_t highest_rank = -1;
  double lowest = 0;
  double highest = 0;
  double sum = 0;
  std::size_t count = 0;

  void add(std::int64_t rank, double value) {
    if (count == 0 || value < lowest) {
      lowest = value;
      lowest_rank = rank;
    }
    if (count == 0 || value > highest) {
      highest = value;
      highest_rank = rank;
    }
    sum += value;
    ++count;
  }
  double gap() const noexcept { return highest - lowest; }
  double mean() const noexcept { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

std::string gbps_text(double value) { return std::to_string(value).substr(0, 6) + " GB/s"; }

}  // namespace

Findings check_slow_rank(Evidence& evidence) {
  std::map<std::int64_t, StepParts> ranks;
  for (const StepParts& step : evidence.steps()) {
    StepParts& rank = ranks[step.rank];
    rank.computing += step.computing;
    rank.exposed += step.exposed;
    rank.communication += step.communication;
    rank.free += step.free;
  }
  if (ranks.size() < 2) return not_checked("there is one rank only; load the folder of all ranks");
  Range computing, communication, free;
  double whole = 0;
  for (const auto& [rank, parts] : ranks) {
    computing.add(rank, parts.computing);
    communication.add(rank, parts.exposed);
    free.add(rank, parts.free);
    whole += parts.computing + parts.exposed + parts.free;
  }
  const double mean = whole / static_cast<double>(ranks.size());
  const std::string source = "step_time: largest less smallest of all ranks, limit " +
                             percent(kLimits.rank_gap_share) + " of the mean step (" + duration(mean) + ")";
  if (!(mean > 0)) return not_checked("the ranks did no work");
  const auto text = [&](const char* what, const Range& range) {
    return std::string(what) + " differs by " + duration(range.gap()) + " (" + percent(range.gap() / mean) +
           "): " + duration(range.highest) + " on rank " + std::to_string(range.highest_rank) + ", " +
           duration(range.lowest) + " on rank " + std::to_string(range.lowest_rank);
  };
  Findings findings;
  const auto judge = [&](const char* what, const Range& range, std::int64_t slow, const char* cure) {
    if (range.gap() / mean <= kLimits.rank_gap_share) return;
    findings.push_back(
        {severity_of_share(range.gap() / mean),
         "rank " + std::to_string(slow) + " makes the others wait: its " + what + " differs most",
         text(what, range), cure, source});
  };
  judge("computing time", computing, computing.highest_rank,
        "compare its kernels with those of a fast rank (diff): frequency, temperature, a larger share of the "
        "work");
  judge("idle time", free, free.highest_rank,
        "compare its host with that of a fast rank: CPU binding, other processes, data loading, garbage "
        "collection");
  // Who waits least in the collectives came last.
  judge("exposed communication", communication, communication.lowest_rank,
        "it comes last to the collectives, so the others wait there: look at its computing and idle time");
  if (!findings.empty()) return findings;
  return nothing_found("the ranks are equally fast",
                       text("computing time", computing) + "; " + text("idle time", free) + "; " +
                           text("exposed communication", communication),
                       source);
}

Findings check_slow_link(Evidence& evidence) {
  const std::vector<RankCommunication>& ranks = evidence.communication();
  if (ranks.empty()) return not_checked("file communication.json absent");
  if (ranks.size() < 2) return not_checked("there is one rank only; load the folder of all ranks");
  Findings findings;
  std::string figures;
  for (const char* transport : {"SDMA", "RDMA"}) {
    Range range;
    for (const RankCommunication& rank : ranks) {
      double size = 0;
      double time = 0;
      std::map<std::string, bool> seen;
      for (const auto& row : rank.communication.bandwidths) {
        if (row.transport != transport || row.of.operation.starts_with("Total Op Info")) continue;
        if (!seen.try_emplace(row.of.step + row.of.group + row.of.operation, true).second) continue;
        if (std::isfinite(row.size_mb) && std::isfinite(row.transit_s)) {
          size += row.size_mb;
          time += row.transit_s;
        }
      }
      if (time > 0) range.add(rank.rank, size / time / 1e3);
    }
    if (range.count == 0) continue;
    const std::string text = std::string(transport) + " " + gbps_text(range.mean()) + " on average, " +
                             gbps_text(range.lowest) + " on rank " + std::to_string(range.lowest_rank) +
                             ", " + gbps_text(range.highest) + " on rank " +
                             std::to_string(range.highest_rank);
    figures += (figures.empty() ? "" : "; ") + text;
    if (range.count < 2 || range.gap() < kLimits.link_gap_share * range.mean()) continue;
    findings.push_back(
        {Severity::medium,
         std::string("the ") + transport + " link of rank " + std::to_string(range.lowest_rank) + " is slow",
         text, "check that rank's links and its neighbours (communication_matrix)",
         "communication.json: sum of sizes by sum of transit times per rank, limit " +
             percent(kLimits.link_gap_share) + " of the mean"});
  }
  if (!findings.empty()) return findings;
  if (figures.empty()) return not_checked("communication.json has no SDMA or RDMA transfers");
  return nothing_found("links are equally fast", figures,
                       "communication.json: sizes by transit times per rank");
}

}  // namespace headrace::analysis::device
