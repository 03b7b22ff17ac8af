// The operator waits for storage: files that are not in memory, on a slow disk or across a network.
#include <algorithm>

#include "sentences.h"

namespace headrace::analysis {
namespace {

/// Reads of at most this size are small: a disk then serves requests, not bytes.
constexpr double kSmallRead = 32 * 1024;
/// Time that one page fault takes of a run, at least, where faults are the reason: a fast disk answers in this.
constexpr double kFault_s = 50e-6;

struct Reads {
  double bytes = 0;
  double calls = 0;
  double from_storage = 0;
  double faults = 0;
  double busy_s = 0;
};

Reads reads_of(const profile::OperatorProfile& op) {
  Reads reads;
  for (const profile::WorkerProfile& worker : op.per_worker) {
    reads.bytes += static_cast<double>(worker.read_bytes.value_or(0));
    reads.calls += static_cast<double>(worker.read_calls.value_or(0));
    reads.from_storage += static_cast<double>(worker.storage_bytes.value_or(0));
    reads.faults += static_cast<double>(worker.major_faults.value_or(0));
    reads.busy_s += worker.busy_s;
  }
  return reads;
}

constexpr std::string_view kOfNetworks[] = {"nfs",    "nfs4",  "cifs", "smb3", "ceph",     "lustre", "gpfs",
                                            "beegfs", "pvfs2", "9p",   "afs",  "virtiofs", "ocfs2",  "gfs2"};

/// Place of the files, if it is worth a word.
std::string place_of(const profile::OperatorProfile& op) {
  const std::string type = op.file_system.value_or("");
  if (type == "fuse") return "a file system in user space (fuse)";
  if (std::find(std::begin(kOfNetworks), std::end(kOfNetworks), type) != std::end(kOfNetworks))
    return "a network file system (" + type + ")";
  return {};
}

std::string why(const Reads& reads, const std::string& place) {
  const std::string from = place.empty() ? "" : " on " + place;
  if (reads.faults * kFault_s >= 0.1 * reads.busy_s && reads.faults > reads.calls)
    return "memory-mapped files that are not in memory (" + counted(reads.faults, "page fault") +
           " read from storage)" + from;
  const double size = ratio(reads.bytes, reads.calls);
  if (reads.calls > 0 && size <= kSmallRead)
    return "small reads (" + memory_size(size) + " each on average)" + from;
  if (reads.bytes > 0 && reads.from_storage >= kMostOf * reads.bytes)
    return "files that are not in the page cache (" + memory_size(reads.from_storage) + " of " +
           memory_size(reads.bytes) + " came from storage)" + from;
  return place.empty() ? "a slow disk or a network file system" : place;
}

std::string cure(const Reads& reads) {
  const bool small = reads.calls > 0 && ratio(reads.bytes, reads.calls) <= kSmallRead;
  return small ? "pack the items into larger files that are read in sequence (shards), or copy them to a "
                 "local disk"
               : "copy the data to a faster (local) disk, or keep it in memory";
}

/// Readers wait side by side: what the causes without storage advise. How many at once the storage serves is
/// not known.
void add_more_readers(const Case& facts, Finding& finding) {
  for (const Cause without : {Cause::no_overlap, Cause::too_few_workers}) {
    std::optional<Finding> other = rule_of(without).judge(facts);
    if (!other || other->advice.empty()) continue;
    for (Advice& advice : other->advice) {
      advice.text += "; if the storage serves that many readers at once";
      finding.advice.push_back(std::move(advice));
    }
    return;
  }
}

}  // namespace

std::optional<Finding> judge_storage_bound(const Case& facts) {
  if (facts.candidate < 0) return std::nullopt;
  // Batches are ready, and threads that hold the interpreter lock slow the step itself: no reader does that.
  if (facts.lock.contended && facts.gate.starved_share < facts.thresholds.gate.starved_share)
    return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  if (!op.storage_wait_s || op.fidelity == profile::Fidelity::inclusive) return std::nullopt;
  const double waits = ratio(*op.storage_wait_s, op.busy_s);
  if (!facts.held_up_by(waits)) return std::nullopt;
  const Reads reads = reads_of(op);
  Finding finding;
  finding.headline = op.name + " waits for storage";
  finding.evidence = cause_evidence(
      op.name + " waits for storage " + percent(waits) + " of its time: " + why(reads, place_of(op)),
      {{"storage_wait_share", waits},
       {"storage_bytes", reads.from_storage},
       {"read_bytes", reads.bytes},
       {"read_calls", reads.calls},
       {"major_faults", reads.faults}});
  Advice advice = in_words(cure(reads));
  advice.text += "; with everything in memory (a warm epoch)";
  finding.advice.push_back(with_shorter_items(facts, std::move(advice), waits));
  add_more_readers(facts, finding);
  return finding;
}

}  // namespace headrace::analysis
