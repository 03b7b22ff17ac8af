// The operator waits for a remote service, or for a disk. docs/verdicts/one_of_many.md
#include <algorithm>
#include <cmath>

#include "headrace/analysis/read/remote_reads.h"
#include "sentences.h"

namespace headrace::analysis {
namespace {

// --- remote_storage ---

std::string rate_of(const RemoteReads& reads) { return memory_size(reads.bytes_per_s) + "/s"; }

double per_batch(const Case& facts, double total) {
  return ratio(total, static_cast<double>(facts.profile.sink.steps));
}

Evidence evidence_of(const Case& facts, const RemoteReads& reads) {
  const profile::Remote& remote = *facts.op().remote;
  std::string says =
      facts.op().name + " spends " + percent(reads.waits_share) +
      " of its time in requests to a remote service: " +
      as_written(std::round(per_batch(facts, static_cast<double>(remote.requests)) * 10) / 10) + " a batch, ";
  if (remote.latency.count > 0)
    says += "latency " + duration(remote.latency.p50_s) + " (p90 " + duration(remote.latency.p90_s) + "), ";
  says += rate_of(reads) + " over all readers";
  if (reads.in_flight > 0)
    says += ", " + as_written(std::round(reads.in_flight * 10) / 10) + " in flight on average";
  if (reads.refused_share > 0) says += "; " + percent(reads.refused_share) + " of the requests were refused";
  if (reads.broken_share > 0)
    says += "; " + percent(reads.broken_share) +
            " of them had no whole answer (no connection, reset, cut, timed out)";
  if (remote.backoff_s > 0)
    says += "; pauses after failed ones took " + percent(ratio(remote.backoff_s, facts.op().busy_s)) +
            " of its time";
  if (reads.cold_ratio >= facts.thresholds.remote.cold_ratio)
    says += "; first reads took " + as_written(std::round(reads.cold_ratio * 10) / 10) +
            " times as long as repeated ones (a cold cache)";
  Evidence evidence = cause_evidence(std::move(says), {{"remote_share", reads.waits_share},
                                                       {"requests", static_cast<double>(remote.requests)},
                                                       {"refused_share", reads.refused_share},
                                                       {"broken_share", reads.broken_share},
                                                       {"lost_share", reads.lost_share},
                                                       {"transfer_share", reads.transfer_share},
                                                       {"in_flight", reads.in_flight},
                                                       {"bytes_per_s", reads.bytes_per_s},
                                                       {"latency_p50_s", remote.latency.p50_s},
                                                       {"cold_ratio", reads.cold_ratio}});
  if (reads.load_exponent) evidence.figures["load_exponent"] = *reads.load_exponent;
  return evidence;
}

/// Nothing here sets a parameter that sends more requests.
void advise_when_throttled(const Case& facts, const RemoteReads& reads, Finding& finding) {
  finding.headline = "the remote service refuses the requests of " + facts.op().name;
  finding.advice.push_back(with_shorter_items(
      facts,
      in_words("send fewer requests: keep what is read in a local cache, or pack it into larger objects; "
               "predicted: without refused requests and the pauses after them"),
      reads.lost_share));
  finding.advice.push_back(
      in_words("do not add readers: the service refuses " + percent(reads.refused_share) + " of " +
               as_written(std::round(reads.requests_per_s * 10) / 10) +
               " requests a second, and each reader more raises that load; fewer readers, or longer pauses "
               "after a refusal (with jitter), lose fewer attempts"));
}

/// Nor here: what breaks may break of the load.
void advise_when_broken(const Case& facts, const RemoteReads& reads, Finding& finding) {
  finding.headline = "requests of " + facts.op().name + " to a remote service fail";
  finding.advice.push_back(with_shorter_items(
      facts,
      in_words(
          "find out why connections are refused, reset or time out (address, time limit, the service's log), "
          "or keep what is read in a local cache; predicted: without failed requests and the pauses after "
          "them"),
      reads.lost_share));
  finding.advice.push_back(
      in_words("do not add readers: " + percent(reads.broken_share) + " of " +
               as_written(std::round(reads.requests_per_s * 10) / 10) +
               " requests a second have no whole answer, and more of them at once may be why"));
}

void advise_when_link_is_full(const Case& facts, const RemoteReads& reads, Finding& finding) {
  finding.headline = "the link to the remote service of " + facts.op().name + " is full";
  finding.evidence.says +=
      "; a byte takes the longer the more answers arrive at once, so they share the link";
  finding.advice.push_back(with_shorter_items(
      facts,
      in_words(
          "read fewer bytes (compression, smaller samples, only the columns that are used), or keep them "
          "in a local cache; more readers gain nothing; predicted: with half of the bytes"),
      0.5 * reads.waits_share * reads.transfer_share));
}

void advise_when_service_is_busy(const Case& facts, const RemoteReads& reads, Finding& finding) {
  finding.headline = "the remote service of " + facts.op().name + " is busy";
  finding.evidence.says += "; requests wait for each other there, so the service works on few at a time";
  finding.advice.push_back(with_shorter_items(
      facts,
      in_words("make the service answer faster (more capacity there, less work per request), or keep its "
               "answers in a local cache; more readers gain nothing; predicted: with answers from a cache"),
      reads.waits_share));
}

void advise_when_latency_bound(const Case& facts, const RemoteReads& reads, Finding& finding) {
  const bool transfers = reads.transfer_share >= 0.5;
  finding.headline =
      facts.op().name + (!transfers          ? " waits for the latency of a remote service"
                         : reads.limit_known ? " waits for slow connections to a remote service"
                                             : " waits for bytes of a remote service: a full "
                                               "link, or slow connections");
  if (!reads.limit_known) finding.certainty = kEstimated;
  for (const Cause without : {Cause::no_overlap, Cause::too_few_workers}) {
    std::optional<Finding> other = rule_of(without).judge(facts);
    if (!other || other->advice.empty()) continue;
    for (Advice& advice : other->advice) {
      if (!reads.limit_known && advice.predicted_step_s &&
          advice.text.find("; if what answers") == std::string::npos)
        advice.text += "; if the service answers that many at once";
      finding.advice.push_back(std::move(advice));
    }
    break;
  }
  if (reads.cold_ratio >= facts.thresholds.remote.cold_ratio) {
    const profile::Remote& remote = *facts.op().remote;
    const double slower_s = remote.first_reads_s * (1 - 1 / reads.cold_ratio);
    finding.advice.push_back(with_shorter_items(
        facts,
        in_words("read once before the training (warm the cache), or keep a local copy; predicted: with all "
                 "reads as fast as repeated ones"),
        ratio(slower_s, facts.op().busy_s)));
  }
  finding.advice.push_back(in_words(
      "fewer, larger reads: pack items into larger objects that are read in sequence, or keep a local "
      "cache"));
}

// --- storage_bound ---

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
  if (reads.faults * kFault_s >= kHardly * reads.busy_s && reads.faults > reads.calls)
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

/// The operator waits for a remote service: for its latency, for a full link, or because the service refuses requests.
std::optional<Finding> judge_remote_storage(const Case& facts) {
  if (facts.candidate < 0) return std::nullopt;
  // Batches are ready, and threads that hold the interpreter lock slow the step itself: no reader does that.
  if (facts.lock.contended && facts.gate.starved_share < facts.thresholds.gate.starved_share)
    return std::nullopt;
  const RemoteReads reads = remote_reads(facts.profile, facts.candidate, facts.thresholds.remote);
  if (reads.limit == RemoteLimit::kNone || !facts.held_up_by(reads.waits_share)) return std::nullopt;
  Finding finding;
  finding.evidence = evidence_of(facts, reads);
  switch (reads.limit) {
    case RemoteLimit::kThrottled:
      advise_when_throttled(facts, reads, finding);
      break;
    case RemoteLimit::kBroken:
      advise_when_broken(facts, reads, finding);
      break;
    case RemoteLimit::kLink:
      advise_when_link_is_full(facts, reads, finding);
      break;
    case RemoteLimit::kService:
      advise_when_service_is_busy(facts, reads, finding);
      break;
    default:
      advise_when_latency_bound(facts, reads, finding);
  }
  return finding;
}

/// The operator waits for storage: files that are not in memory, on a slow disk or across a network.
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
