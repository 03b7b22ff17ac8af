// Ranks against each other: who is slow, and whose link. The gaps are those of the cluster's tables.
#include <array>
#include <cmath>
#include <set>
#include <string>

#include "analysis/device/advice/rule.h"
#include "headrace/analysis/device/cluster.h"

namespace headrace::analysis::device {
namespace {

Table gaps_of(Evidence& evidence) {
  ClusterData data;
  for (const StepParts& step : evidence.steps()) {
    StepTimes parts{};
    parts[kComputingPart] = step.computing;
    parts[kExposedPart] = step.exposed;
    parts[kFreePart] = step.free;
    data.steps.push_back({"", step.rank, parts});
  }
  for (const RankCommunication& rank : evidence.communication()) {
    for (const auto& each : rank.communication.bandwidths) data.bandwidths.push_back({rank.rank, each});
  }
  return cluster_tables(data).gaps;
}

std::string gbps_text(double value) { return std::to_string(value).substr(0, 6) + " GB/s"; }

constexpr const char* kOneRank = "there is one rank only; load the folder of all ranks";

struct Quantity {
  const char* shown;
  const char* cure;
};
/// The first rows of the gaps.
constexpr std::array<Quantity, 3> kQuantities = {
    {{"computing time",
      "compare its kernels with those of a fast rank (diff): frequency, temperature, a larger share of the "
      "work"},
     // Who waits least in the collectives came last.
     {"exposed communication",
      "it comes last to the collectives, so the others wait there: look at its computing and idle time"},
     {"idle time",
      "compare its host with that of a fast rank: CPU binding, other processes, data loading, garbage "
      "collection"}}};

}  // namespace

Findings check_slow_rank(Evidence& evidence) {
  if (!evidence.traces().empty() && evidence.traces().front().is_run_of_its_own)
    return not_checked("the traces are runs of their own, not ranks of one");
  std::set<std::int64_t> ranks;
  for (const StepParts& step : evidence.steps()) ranks.insert(step.rank);
  if (ranks.size() < 2) return not_checked(kOneRank);
  const Table gaps = gaps_of(evidence);
  const std::string source = "step_time: largest less smallest of all ranks, limit " +
                             percent(kLimits.rank_gap_share) + " of the mean step";
  Findings findings;
  std::string all;
  for (std::size_t row = 0; row < kQuantities.size(); ++row) {
    const Quantity& quantity = kQuantities[row];
    const auto number = [&](const char* column) { return gaps.numbers(column)[row]; };
    const auto on = [&](const char* end) {
      return duration(number(end)) + " on rank " +
             std::to_string(gaps.integers(std::string(end) + "_rank")[row]);
    };
    if (!std::isfinite(number("gap_share"))) return not_checked("the ranks did no work");
    const std::string figures = std::string(quantity.shown) + " differs by " + duration(number("gap")) +
                                " (" + percent(number("gap_share")) + "): " + on("highest") + ", " +
                                on("lowest");
    all += (all.empty() ? "" : "; ") + figures;
    if (gaps.integers("slow")[row] == 0) continue;
    const double share = number("gap_share");
    findings.push_back({severity_of_share(share),
                        rank_text(gaps.integers("slow_rank")[row]) + " makes the others wait: its " +
                            quantity.shown + " differs most",
                        figures, quantity.cure, source, findings.empty() ? share : findings.front().share});
  }
  return findings.empty() ? nothing_found("the ranks are equally fast", all, source) : findings;
}

Findings check_slow_link(Evidence& evidence) {
  if (evidence.communication().empty()) return not_checked("file communication.json absent");
  if (evidence.communication().size() < 2) return not_checked(kOneRank);
  const Table gaps = gaps_of(evidence);
  const std::string source = "communication.json: sum of sizes by sum of transit times per rank, limit " +
                             percent(kLimits.link_gap_share) + " of the mean";
  Findings findings;
  std::string all;
  for (std::size_t row = 0; row < gaps.rows(); ++row) {
    if (gaps.texts("unit")[row] != "GB/s") continue;
    const auto number = [&](const char* column) { return gbps_text(gaps.numbers(column)[row]); };
    const auto rank = [&](const char* column) {
      return " on rank " + std::to_string(gaps.integers(column)[row]);
    };
    const std::string transport(gaps.texts("quantity")[row]);
    const std::string figures = transport + " " + number("mean") + " on average, " + number("lowest") +
                                rank("lowest_rank") + ", " + number("highest") + rank("highest_rank");
    all += (all.empty() ? "" : "; ") + figures;
    if (gaps.integers("slow")[row] == 0) continue;
    findings.push_back({Severity::medium,
                        "the " + transport + " link of" + rank("lowest_rank").substr(3) + " is slow", figures,
                        "check that rank's links and its neighbours (communication_matrix)", source});
  }
  if (all.empty()) return not_checked("communication.json has no SDMA or RDMA transfers");
  return findings.empty() ? nothing_found("links are equally fast", all, source) : findings;
}

}  // namespace headrace::analysis::device
