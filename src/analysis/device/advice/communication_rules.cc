// How collectives use the links: small packets, unaligned copies, contention, packets sent again.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/device/advice/rule.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

using trace::Row;
using trace::ascend::CommunicationBandwidth;
using trace::ascend::CommunicationTime;

constexpr const char* kAbsentFile = "file communication.json absent";

bool is_sum(std::string_view operation) noexcept { return operation.starts_with("Total Op Info"); }

/// One entry per operation and transport: its size, however many rows its packets have.
using OperationKey = std::tuple<std::int64_t, std::string, std::string, std::string>;
std::map<OperationKey, const CommunicationBandwidth*> operations_of(
    const std::vector<RankCommunication>& ranks, std::string_view transport) {
  std::map<OperationKey, const CommunicationBandwidth*> found;
  for (const RankCommunication& rank : ranks) {
    for (const CommunicationBandwidth& row : rank.communication.bandwidths) {
      if (row.transport == transport && !is_sum(row.of.operation) && row.size_mb > 0)
        found.try_emplace({rank.rank, row.of.step, row.of.group, row.of.operation}, &row);
    }
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

SmallPackets small_packets(const std::vector<RankCommunication>& ranks, const char* transport,
                           double limit_mb) {
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
  const std::vector<RankCommunication>& ranks = evidence.communication();
  if (ranks.empty()) return not_checked(kAbsentFile);
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
        {Severity::medium, std::string("many ") + transport + " operations are too small for the link",
         text + ", " + percent(packets.share()) + ", " + duration(packets.seconds) + " in transit",
         "a larger batch or gradient accumulation, larger buckets of gradients, ZeRO 2 or 1 "
         "instead of 3, a fused optimizer",
         "communication.json: Transit Size(MB), limit " + percent(kLimits.small_packet_share) +
             " of the operations"});
  }
  if (!findings.empty()) return findings;
  return nothing_found("packets are large enough", figures, "communication.json: Transit Size(MB)");
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
  if (unaligned == 0) return nothing_found("copies between devices are aligned", figures, source);
  const Severity severity = share >= kLimits.mostly_unaligned_share ? Severity::high
                            : share >= kLimits.unaligned_share      ? Severity::medium
                                                                    : Severity::low;
  return {{severity, "copies between devices have sizes that the link is slow for", figures,
           "make sizes of communicated tensors multiples of 512 bytes", source}};
}

Findings check_bandwidth_contention(Evidence& evidence) {
  const std::vector<RankCommunication>& ranks = evidence.communication();
  if (ranks.empty()) return not_checked(kAbsentFile);
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
  if (slow.empty())
    return nothing_found("collectives keep their bandwidth beside computation", count, source);
  std::stable_sort(slow.begin(), slow.end(), [](const Slow& a, const Slow& b) { return a.gbps < b.gbps; });
  std::string figures = count;
  for (std::size_t i = 0; i < std::min<std::size_t>(10, slow.size()); ++i)
    figures += (i == 0 ? ": " : ", ") + slow[i].operation + " " + printed(slow[i].gbps) + " GB/s";
  return {{Severity::low, "communication and computation compete for the device's memory", figures,
           "start such collectives beside kernels that move less data, or overlap less", source}};
}

Findings check_retransmission(Evidence& evidence) {
  const std::vector<RankCommunication>& ranks = evidence.communication();
  if (ranks.empty()) return not_checked(kAbsentFile);
  struct Operation {
    double shortest = INFINITY;
    double longest_rdma = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Operation> operations;
  for (const RankCommunication& rank : ranks) {
    for (const CommunicationTime& time : rank.communication.times) {
      if (is_sum(time.of.operation)) continue;
      Operation& operation = operations[{time.of.step, time.of.group, time.of.operation}];
      if (time.elapse_s >= 0) operation.shortest = std::min(operation.shortest, time.elapse_s);
    }
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
  if (count == 0)
    return nothing_found("no operation looks like lost packets",
                         std::to_string(operations.size()) + " operations", source);
  return {{Severity::high, "packets are lost and sent again", std::to_string(count) + " operations: " + names,
           "check the network: switches' queues, HCCL_RDMA_TC and HCCL_RDMA_SL, optical modules", source}};
}

}  // namespace headrace::analysis::device
