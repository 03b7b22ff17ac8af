// The rules, in the order in which they are shown within one severity.
#include <algorithm>
#include <utility>

#include "analysis/device/advice/rule.h"
#include "headrace/analysis/device/advice.h"

namespace headrace::analysis::device {
namespace {

constexpr Rule kRules[] = {
    // Any trace.
    {"data_loading", false, &check_data_loading, "the run is not limited by its input",
     "the loop waits for its input",
     "wrap the loader (hr.wrap) to see which operator limits it; more workers, a longer prefetch queue, "
     "pinned memory and files on a local disk are the usual changes"},
    {"exposed_communication", false, &check_exposed_communication, "little communication is exposed",
     "communication that no computation hides takes much of the step",
     "if one rank comes late (slow_rank, stragglers) the others wait inside the collective: speed that rank "
     "up; else overlap gradients with the backward pass, or communicate less often"},
    {"exposed_copies", false, &check_exposed_copies, "few copies are exposed",
     "copies keep the device from computing"},
    {"one_off_calls", false, &check_one_off_calls, "no call that costs much once takes much of the recording",
     "a few calls take much of the recording: a module is loaded, code compiled or a graph captured",
     "run the first steps before you record (wait and warmup of the profiler's schedule); if later steps do "
     "it, too, their shapes change"},
    {"allocation_calls", false, &check_allocation_calls, "memory of the device is seldom taken or given back",
     "the host spends its time taking and freeing memory of the device",
     "let PyTorch's allocator keep it: no PYTORCH_NO_CUDA_MEMORY_CACHING, no torch.cuda.empty_cache() in the "
     "loop; if memory is short, a smaller batch or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; if it "
     "is only the first step, warm up before recording"},
    {"garbage_collection", false, &check_garbage_collection, "Python's garbage collector is quick",
     "Python's garbage collector stops the loop"},
    // Each of these leaves out what those before it explain.
    {"synchronisation", false, &check_synchronisation, "the device is seldom idle behind a wait of the host",
     "the host waits for the device, which then has nothing to do",
     "move .item(), .cpu() and prints of tensors behind the step or do them every N steps; if the device was "
     "inside a collective then, the rank that comes late is the reason"},
    {"launch_bound", false, &check_launch_bound, "the host launches work in time",
     "the host launches work too late: the device runs out of it",
     "larger batches, fused operators or graph mode make fewer launches; keep .item() and prints of tensors "
     "out of the step"},
    {"preparing", false, &check_preparing, "the device starts soon after each step begins",
     "the device has nothing to do while a step begins on the host",
     "look at copies to the device and the first launches; waits for the input are data_loading's"},
    {"free_time", false, &check_free_time, "the device is seldom idle within its steps",
     "the device is idle for much of its steps",
     "no rule above explains it: gaps between kernels (larger batches, fused operators or graph mode make "
     "fewer), or launches that are not in the file"},
    // The host of an Ascend device.
    {"operator_compilation", true, &check_operator_compilation,
     "few operators are compiled while the step runs", "operators are compiled while the step runs",
     "torch_npu.npu.set_compile_mode(jit_compile=False) and torch_npu.npu.config.allow_internal_format = "
     "False"},
    {"synchronised_launches", true, &check_synchronised_launches, "launches are asynchronous",
     "most launches wait until the device has done them", "unset ASCEND_LAUNCH_BLOCKING"},
    {"memory_calls", true, &check_memory_calls, "memory of the device is seldom taken or given back",
     "the step takes and gives back memory of the device",
     "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, no torch_npu.npu.empty_cache() in the loop, or a "
     "smaller batch"},
    {"sync_batch_norm", false, &check_sync_batch_norm, "SyncBatchNorm is not used much",
     "SyncBatchNorm communicates in every layer",
     "BatchNorm or GroupNorm if the batch of one device is large enough; else synchronise fewer layers"},
    {"affinity_apis", true, &check_affinity_apis, "no operators that the device has in one piece",
     "the device has single operators for sequences that the model runs piece by piece"},
    // Kernels.
    {"fusible_operators", false, &of_kernels<check_fusible_operators>,
     "no sequence of kernels is worth fusing", "",
     "fuse them: an affinity API, torch.compile, or an operator of your own"},
    {"aicpu_operators", true, &of_kernels<check_aicpu>, "no long operator runs on the device's CPU",
     "operators run on the device's CPU, which is slow",
     "use types that the cores have (float instead of double, int32 instead of int64), and masks instead of "
     "index, index_put and nonzero"},
    {"dynamic_shapes", true, &of_kernels<check_dynamic_shapes>, "shapes are static",
     "every kernel has dynamic shapes",
     "torch_npu.npu.set_compile_mode(jit_compile=False) and torch_npu.npu.config.allow_internal_format = "
     "False; pad inputs to a few shapes"},
    {"block_dim", true, &of_kernels<check_block_dim>, "kernels use all cores evenly",
     "kernels divide their work into blocks that do not fill the cores", "tune these operators (AOE)"},
    {"unbound_operators", true, &of_kernels<check_unbound_operators>, "long kernels keep a pipeline busy",
     "no pipeline is busy in long kernels", "tune these operators (AOE), or give them larger shapes"},
    {"core_performance", true, &of_kernels<check_core_performance>, "the operators keep a pipeline busy",
     "operators leave the cores' pipelines idle"},
    {"core_frequency", true, &check_core_frequency, "the cores keep their frequency",
     "the cores ran below their frequency",
     "look at temperature and power of the device, and at other work on it"},
    // Communication.
    {"small_packets", true, &check_small_packets, "packets are large enough", "",
     "a larger batch or gradient accumulation, larger buckets of gradients, ZeRO 2 or 1 instead of 3, a "
     "fused optimizer"},
    {"byte_alignment", true, &check_byte_alignment, "copies between devices are aligned",
     "copies between devices have sizes that the link is slow for",
     "make sizes of communicated tensors multiples of 512 bytes"},
    {"bandwidth_contention", true, &check_bandwidth_contention,
     "collectives keep their bandwidth beside computation",
     "communication and computation compete for the device's memory",
     "start such collectives beside kernels that move less data, or overlap less"},
    {"retransmission", true, &check_retransmission, "no operation looks like lost packets",
     "packets are lost and sent again",
     "check the network: switches' queues, HCCL_RDMA_TC and HCCL_RDMA_SL, optical modules"},
    // Ranks, and the run.
    {"slow_rank", false, &check_slow_rank, "the ranks are equally fast"},
    {"slow_link", false, &check_slow_link, "links are equally fast", "",
     "check that rank's links and its neighbours (communication_matrix)"},
    {"environment_variables", true, &check_environment, "no environment variable costs time"},
};

}  // namespace

Findings not_checked(std::string why, std::string source) {
  return {{Severity::not_checked, "", std::move(source), 0, "not checked: " + std::move(why)}};
}

Findings found_if(bool is_found, Finding finding) {
  if (!is_found) return {{Severity::none, std::move(finding.figures), std::move(finding.source)}};
  return {std::move(finding)};
}

void keep_worst(RankShare& worst, const RankShare& rank) {
  if (rank.whole > 0 && (worst.rank < 0 || rank.share() > worst.share())) worst = rank;
}

RankShare idle_share(Evidence& evidence, const trace::Trace& trace, const char* column) {
  RankShare rank{&trace, trace.rank};
  if (trace.device_rows.empty()) return rank;
  const Table& steps = evidence.idle(trace).steps;
  for (std::size_t row = 0; row < steps.rows(); ++row) {
    rank.part += steps.numbers(column)[row];
    rank.whole += steps.numbers("window_s")[row];
  }
  return rank;
}

std::string figures_of(const RankShare& worst, const char* what, const char* of) {
  return rank_text(worst.rank) + ": " + what + " " + duration(worst.part) + " of " + duration(worst.whole) +
         of + ", " + percent(worst.share());
}

std::string rank_text(std::int64_t rank) { return rank < 0 ? "a rank" : "rank " + std::to_string(rank); }

Severity severity_of_share(double share) noexcept {
  if (share >= 0.05) return Severity::high;
  return share >= 0.03 ? Severity::medium : Severity::low;
}

Table advice(std::span<const trace::Trace> traces, std::span<const trace::ascend::ProfileFolder> profiles) {
  Evidence evidence(traces, profiles);
  std::vector<std::pair<const char*, Finding>> all;
  const bool of_ascend = evidence.has_cann() || !profiles.empty();
  for (const Rule& rule : kRules) {
    if (rule.of_ascend && !of_ascend) continue;
    for (Finding& finding : rule.check(evidence)) {
      const bool is_found = finding.severity < Severity::none;
      if (finding.says.empty()) finding.says = is_found ? rule.says : rule.none;
      if (finding.cure.empty() && is_found) finding.cure = rule.cure;
      all.emplace_back(rule.name, std::move(finding));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.severity, -a.second.share) < std::pair(b.second.severity, -b.second.share);
  });
  Rows<AdviceColumns> rows;
  for (const auto& [rule, finding] : all)
    rows.add(rule, kSeverities[static_cast<std::size_t>(finding.severity)], finding.says, finding.figures,
             finding.cure, finding.source);
  return rows.take();
}

}  // namespace headrace::analysis::device
