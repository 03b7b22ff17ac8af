// Collectives and links: small packets, unaligned copies, contention, lost packets; slow ranks and slow
// links.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/device/advice/rule.h"
#include "headrace/analysis/device/cluster.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

using trace::Row;
using trace::ascend::Communication;
using trace::ascend::CommunicationBandwidth;
using trace::ascend::CommunicationTime;

constexpr const char* kAbsentFile = "file communication.json absent";

bool is_sum(std::string_view operation) noexcept { return operation.starts_with("Total Op Info"); }

/// One entry per operation and transport: its size, however many rows its packets have.
using OperationKey = std::tuple<std::int64_t, std::string, std::string, std::string>;
std::map<OperationKey, const CommunicationBandwidth*> operations_of(const Communication& communication,
                                                                    std::string_view transport) {
  std::map<OperationKey, const CommunicationBandwidth*> found;
  for (const CommunicationBandwidth& row : communication.bandwidths) {
    if (row.transport == transport && !is_sum(row.of.operation) && row.size_mb > 0)
      found.try_emplace({row.of.rank, row.of.step, row.of.group, row.of.operation}, &row);
  }
  return found;
}

struct SmallPackets {
  std::int64_t operations = 0;
  std::int64_t small = 0;
  double seconds = 0;
  double share() const noexcept {
    return operations == 0 ? 0 : static_cast<double>(small) / static_cast<double>(operations);
  }
};

SmallPackets small_packets(const Communication& ranks, const char* transport, double limit_mb) {
  SmallPackets packets;
  for (const auto& [key, row] : operations_of(ranks, transport)) {
    ++packets.operations;
    if (row->size_mb >= limit_mb) continue;
    ++packets.small;
    packets.seconds += std::isfinite(row->transit_s) ? row->transit_s : 0;
  }
  return packets;
}

std::string printed(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

Findings check_small_packets(Evidence& evidence) {
  const Communication& ranks = evidence.communication();
  if (ranks.profiles == 0) return not_checked(kAbsentFile);
  Findings findings;
  std::string figures;
  for (const auto& [transport, limit] :
       {std::pair("SDMA", kLimits.small_sdma_mb), std::pair("RDMA", kLimits.small_rdma_mb)}) {
    const SmallPackets packets = small_packets(ranks, transport, limit);
    const std::string text = std::to_string(packets.small) + " of " + std::to_string(packets.operations) +
                             " " + transport + " operations move less than " + printed(limit) + " MB";
    figures += (figures.empty() ? "" : "; ") + text;
    if (packets.share() <= kLimits.small_packet_share) continue;
    findings.push_back(
        {Severity::medium,
         text + ", " + percent(packets.share()) + ", " + duration(packets.seconds) + " in transit",
         "communication.json: Transit Size(MB), limit " + percent(kLimits.small_packet_share) +
             " of the operations",
         0, std::string("many ") + transport + " operations are too small for the link"});
  }
  if (findings.empty()) findings.push_back({Severity::none, figures, "communication.json: Transit Size(MB)"});
  return findings;
}

Findings check_byte_alignment(Evidence& evidence) {
  std::int64_t copies = 0;
  std::int64_t unaligned = 0;
  bool any_parts = false;
  for (const trace::Trace& trace : evidence.traces()) {
    const trace::Columns& columns = trace.columns();
    const trace::ArgumentColumn* sizes = columns.argument("size(Byte)");
    const trace::ArgumentColumn* transports = columns.argument("transport type");
    const trace::ArgumentColumn* links = columns.argument("link type");
    if (sizes == nullptr || transports == nullptr || links == nullptr) continue;
    any_parts |= !sizes->rows.empty();
    for (std::size_t i = 0; i < sizes->rows.size(); ++i) {
      const Row row = sizes->rows[i];
      const std::string_view name = columns.name_of(row);
      if (name != "Memcpy" && name != "Reduce_Inline") continue;
      if (text_at(columns, transports, row) != "SDMA" || text_at(columns, links, row) == "ON_CHIP") continue;
      if (sizes->integers[i] <= kLimits.aligned_bytes) continue;
      ++copies;
      unaligned += sizes->integers[i] % kLimits.aligned_bytes != 0 ? 1 : 0;
    }
  }
  if (!any_parts) return not_checked("the trace has no parts of collectives with sizes (Level1 and above)");
  const double share = copies == 0 ? 0 : static_cast<double>(unaligned) / static_cast<double>(copies);
  const std::string figures =
      std::to_string(unaligned) + " of " + std::to_string(copies) + " SDMA copies, " + percent(share);
  const std::string source =
      "parts of collectives: Memcpy and Reduce_Inline over SDMA, size(Byte) no multiple of " +
      std::to_string(kLimits.aligned_bytes);
  const Severity severity = share >= kLimits.mostly_unaligned_share ? Severity::high
                            : share >= kLimits.unaligned_share      ? Severity::medium
                                                                    : Severity::low;
  return found_if(unaligned > 0, {severity, figures, source});
}

Findings check_bandwidth_contention(Evidence& evidence) {
  const Communication& ranks = evidence.communication();
  if (ranks.profiles == 0) return not_checked(kAbsentFile);
  if (!evidence.has_device()) return not_checked("no trace with kernels beside communication.json");
  struct Slow {
    std::string operation;
    double gbps;
    double overlap;
  };
  std::vector<Slow> slow;
  std::int64_t overlapping = 0;
  const auto operations = operations_of(ranks, "SDMA");
  for (const trace::Trace& trace : evidence.traces()) {
    const DeviceWork all = device_work(trace, {});
    std::vector<Interval> products;
    std::map<std::string_view, std::vector<Interval>> collectives;
    for (const Work& work : all.work) {
      const std::string_view name = trace.columns().name_of(work.row);
      if (work.kind == KernelKind::communication) collectives[name].push_back({work.start_ns, work.end_ns});
      if (work.kind == KernelKind::computation && name.find("MatMul") != std::string_view::npos)
        products.push_back({work.start_ns, work.end_ns});
    }
    const Intervals busy_products = merged(std::move(products));
    for (const auto& [key, row] : operations) {
      const auto& [rank, step, group, operation] = key;
      const auto at = collectives.find(operation);
      if (rank != trace.rank || at == collectives.end()) continue;
      const std::int64_t both = total_ns(intersected(merged(at->second), busy_products));
      if (both == 0) continue;
      ++overlapping;
      if (row->bandwidth_gbps > 0 && row->bandwidth_gbps < kLimits.contended_gbps)
        slow.push_back({operation, row->bandwidth_gbps, seconds(both)});
    }
  }
  const std::string source =
      "communication.json: SDMA bandwidth of collectives that run beside a MatMul, limit " +
      printed(kLimits.contended_gbps) + " GB/s";
  const std::string count = std::to_string(slow.size()) + " of " + std::to_string(overlapping) +
                            " collectives beside a matrix multiplication are slow";
  std::stable_sort(slow.begin(), slow.end(), [](const Slow& a, const Slow& b) { return a.gbps < b.gbps; });
  std::string figures = count;
  for (std::size_t i = 0; i < std::min<std::size_t>(10, slow.size()); ++i)
    figures += (i == 0 ? ": " : ", ") + slow[i].operation + " " + printed(slow[i].gbps) + " GB/s";
  return found_if(!slow.empty(), {Severity::low, figures, source});
}

Findings check_retransmission(Evidence& evidence) {
  const Communication& ranks = evidence.communication();
  if (ranks.profiles == 0) return not_checked(kAbsentFile);
  struct Operation {
    double shortest = INFINITY;
    double longest_rdma = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Operation> operations;
  for (const CommunicationTime& time : ranks.times) {
    if (is_sum(time.of.operation)) continue;
    Operation& operation = operations[{time.of.step, time.of.group, time.of.operation}];
    if (time.elapse_s >= 0) operation.shortest = std::min(operation.shortest, time.elapse_s);
  }
  for (const auto& [key, row] : operations_of(ranks, "RDMA")) {
    Operation& operation = operations[{std::get<1>(key), std::get<2>(key), std::get<3>(key)}];
    if (std::isfinite(row->transit_s))
      operation.longest_rdma = std::max(operation.longest_rdma, row->transit_s);
  }
  std::string names;
  std::size_t count = 0;
  for (const auto& [key, operation] : operations) {
    if (!std::isfinite(operation.shortest) || operation.shortest < kLimits.retransmission_s) continue;
    if (operation.longest_rdma <= kLimits.retransmission_s) continue;
    if (++count <= 5) names += (count == 1 ? "" : ", ") + std::get<2>(key);
  }
  const std::string source = "communication.json: operations over " + duration(kLimits.retransmission_s) +
                             " on every rank, with RDMA as long";
  if (count == 0) return {{Severity::none, std::to_string(operations.size()) + " operations", source}};
  return {{Severity::high, std::to_string(count) + " operations: " + names, source}};
}

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
  data.communication.bandwidths = evidence.communication().bandwidths;
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
     // The last rank waits least in the collectives.
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
    findings.push_back({severity_of_share(share), figures, source,
                        findings.empty() ? share : findings.front().share,
                        rank_text(gaps.integers("slow_rank")[row]) + " makes the others wait: its " +
                            quantity.shown + " differs most",
                        quantity.cure});
  }
  if (findings.empty()) findings.push_back({Severity::none, all, source});
  return findings;
}

Findings check_slow_link(Evidence& evidence) {
  if (evidence.communication().profiles == 0) return not_checked("file communication.json absent");
  if (evidence.communication().profiles < 2) return not_checked(kOneRank);
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
    findings.push_back({Severity::medium, figures, source, 0,
                        "the " + transport + " link of" + rank("lowest_rank").substr(3) + " is slow"});
  }
  if (all.empty()) return not_checked("communication.json has no SDMA or RDMA transfers");
  if (findings.empty()) findings.push_back({Severity::none, all, source});
  return findings;
}

}  // namespace headrace::analysis::device
