#include "headrace/analysis/device/kernel_kind.h"

#include <algorithm>
#include <array>

namespace headrace::analysis::device {
namespace {

// Libraries, and what they, the frameworks' own kernels and XLA call collectives.
constexpr std::array<std::string_view, 29> kCommunication = {"nccl",
                                                             "rccl",
                                                             "hccl",
                                                             "hcom_",
                                                             "oneccl",
                                                             "msccl",
                                                             "nvshmem",
                                                             "deep_ep",
                                                             "ep::internode",
                                                             "ep::intranode",
                                                             "symm_mem",
                                                             "multimem",
                                                             "userbuffers",
                                                             "cross_device_reduce",
                                                             "allreduce",
                                                             "all_reduce",
                                                             "allgather",
                                                             "all_gather",
                                                             "reducescatter",
                                                             "reduce_scatter",
                                                             "all_to_all",
                                                             "all-reduce",
                                                             "all-gather",
                                                             "reduce-scatter",
                                                             "all-to-all",
                                                             "collective-permute",
                                                             "collective-broadcast",
                                                             "async-collective",
                                                             "ragged-all-to-all"};
constexpr std::array<std::string_view, 5> kCommunicationFirst = {"collective_subgraph_execution", "send.",
                                                                 "recv.", "send-done", "recv-done"};
/// TorchInductor names its kernels by the operators that they fuse: a copy behind a collective computes.
constexpr std::string_view kFused = "triton_";
constexpr std::array<std::string_view, 7> kMemory = {
    "memcpy", "memset", "hipmemcpy", "hipmemset", "__amd_rocclr_copybuffer", "__amd_rocclr_fillbuffer",
    "dma"};
// Waits, and what the runtime of an MTIA device records on the device's rows.
constexpr std::array<std::string_view, 11> kOther = {
    "event_wait",  "event sync", "stream sync", "context sync", "stream wait event", "event_record",
    "runfunction", "job_exe",    "packet",      "pe_exe",       "cpum_exe_subgraph"};

constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// `lower_case` at the beginning of `text`, in any case.
bool begins(std::string_view text, std::string_view lower_case) noexcept {
  return text.size() >= lower_case.size() && std::equal(lower_case.begin(), lower_case.end(), text.begin(),
                                                        [](char a, char b) { return a == lower(b); });
}

bool holds(std::string_view text, std::string_view lower_case) noexcept {
  return std::search(text.begin(), text.end(), lower_case.begin(), lower_case.end(),
                     [](char a, char b) { return lower(a) == b; }) != text.end();
}

}  // namespace

const char* to_string(KernelKind kind) noexcept {
  constexpr std::array kNames = {"computation", "communication", "memory", "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

KernelKind kind_of_kernel(std::string_view name) noexcept {
  const auto at_the_beginning = [&](std::string_view part) { return begins(name, part); };
  if (!begins(name, kFused) && std::any_of(kCommunication.begin(), kCommunication.end(),
                                           [&](std::string_view part) { return holds(name, part); }))
    return KernelKind::communication;
  if (std::any_of(kCommunicationFirst.begin(), kCommunicationFirst.end(), at_the_beginning))
    return KernelKind::communication;
  if (std::any_of(kMemory.begin(), kMemory.end(), at_the_beginning)) return KernelKind::memory;
  if (std::any_of(kOther.begin(), kOther.end(), at_the_beginning)) return KernelKind::other;
  return KernelKind::computation;
}

KernelKind kind_of_work(trace::EventKind kind, std::string_view name) noexcept {
  if (kind == trace::EventKind::memory_copy || kind == trace::EventKind::memory_set)
    return KernelKind::memory;
  if (kind == trace::EventKind::computation) return KernelKind::computation;
  if (kind == trace::EventKind::collective) return KernelKind::communication;
  return kind_of_kernel(name);
}

}  // namespace headrace::analysis::device
