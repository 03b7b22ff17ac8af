#include "headrace/analysis/read/remote_reads.h"

#include <algorithm>
#include <cmath>

#include "numbers.h"

namespace headrace::analysis {
namespace {

/// Fewer refusals than that happen to any service.
constexpr double kMinRefused = 3;
/// Standard errors by which a slope has to differ from none.
constexpr double kSigmas = 3;
/// Reads of each kind that a comparison of cold and warm ones needs.
constexpr std::uint64_t kMinReads = 10;

double refused_of(const profile::Remote& remote) {
  return static_cast<double>(remote.too_many_requests + remote.unavailable + remote.server_errors);
}

double waits_s(const profile::Remote& remote) {
  return remote.first_byte_s + remote.transfer_s + remote.refused_s + remote.backoff_s;
}

bool is_exact(const std::optional<profile::RemoteTrend>& trend, const RemoteThresholds& thresholds) {
  return trend && trend->error <= thresholds.load_error;
}

/// The load varied enough to say how times depend on it.
bool load_varied(const std::optional<profile::RemoteTrend>& trend, const RemoteThresholds& thresholds) {
  return trend && trend->spread >= thresholds.load_spread;
}

/// Times grow with the load, by more than chance.
bool grows(const std::optional<profile::RemoteTrend>& trend, const RemoteThresholds& thresholds) {
  return load_varied(trend, thresholds) && trend->slope >= thresholds.load_exponent &&
         trend->slope > kSigmas * trend->error;
}

/// How the mean time of a byte grows from the lowest load to the highest, as an exponent. The line through the
/// logarithms is bent by a few bodies that took no time, as the first one of each connection; means are not.
std::optional<double> exponent_of_means(const profile::Remote& remote) {
  const profile::RemoteLoad* low = nullptr;
  const profile::RemoteLoad* high = nullptr;
  for (const profile::RemoteLoad& load : remote.load) {
    if (load.transfers < kMinReads || load.bytes == 0 || load.transfer_s <= 0) continue;
    if (low == nullptr || load.transferring < low->transferring) low = &load;
    if (high == nullptr || load.transferring > high->transferring) high = &load;
  }
  if (low == high || low->transferring <= 0) return std::nullopt;
  const auto byte_s = [](const profile::RemoteLoad& load) {
    return load.transfer_s / static_cast<double>(load.bytes);
  };
  return std::log(byte_s(*high) / byte_s(*low)) / std::log(high->transferring / low->transferring);
}

/// An answer comes when the service gets to it, however late its reader asked.
bool waits_in_queue(const profile::Remote& remote, const RemoteThresholds& thresholds) {
  const std::optional<profile::RemoteTrend>& trend = remote.answer_by_pause;
  return is_exact(trend, thresholds) && trend->slope <= -thresholds.load_exponent &&
         -trend->slope > kSigmas * trend->error;
}

double mean_in_flight(const profile::Remote& remote) {
  double answers = 0, sum = 0;
  for (const profile::RemoteLoad& load : remote.load) {
    const bool waits = remote.first_byte_s >= remote.transfer_s;
    const auto count = static_cast<double>(waits ? load.answers : load.transfers);
    answers += count;
    sum += count * (waits ? load.waiting : load.transferring);
  }
  return ratio(sum, answers);
}

double cold_ratio(const profile::Remote& remote) {
  if (remote.first_reads < kMinReads || remote.repeated_reads < kMinReads) return 0;
  return ratio(remote.first_reads_s / static_cast<double>(remote.first_reads),
               remote.repeated_reads_s / static_cast<double>(remote.repeated_reads));
}

/// Enough requests are lost: `number` of them, a share of all.
bool loses(const RemoteReads& reads, double number, double share, const RemoteThresholds& thresholds) {
  return number >= kMinRefused &&
         (share >= thresholds.refused_share || reads.lost_share >= thresholds.lost_share);
}

}  // namespace

bool reads_remotely(const profile::OperatorProfile& op) {
  return op.remote && ratio(waits_s(*op.remote), op.busy_s) >= kMostOf;
}

RemoteReads remote_reads(const profile::Profile& profile, int index, const RemoteThresholds& thresholds) {
  RemoteReads reads;
  if (index < 0 || static_cast<std::size_t>(index) >= profile.operators.size()) return reads;
  const profile::OperatorProfile& op = profile.operators[static_cast<std::size_t>(index)];
  if (!op.remote || op.remote->requests == 0) return reads;
  const profile::Remote& remote = *op.remote;
  const double refused = refused_of(remote);
  const auto broken = static_cast<double>(remote.connection_errors);
  reads.waits_share = std::min(1.0, ratio(waits_s(remote), op.busy_s));
  reads.refused_share = std::min(1.0, ratio(refused, static_cast<double>(remote.requests)));
  reads.broken_share = std::min(1.0, ratio(broken, static_cast<double>(remote.requests)));
  reads.lost_share = std::min(1.0, ratio(remote.refused_s + remote.backoff_s, op.busy_s));
  reads.transfer_share = ratio(remote.transfer_s, remote.first_byte_s + remote.transfer_s);
  reads.in_flight = mean_in_flight(remote);
  reads.bytes_per_s = ratio(static_cast<double>(remote.bytes), profile.elapsed_s);
  reads.requests_per_s = ratio(static_cast<double>(remote.requests), profile.elapsed_s);
  reads.cold_ratio = cold_ratio(remote);
  const bool transfers = reads.transfer_share >= 0.5;
  const std::optional<profile::RemoteTrend>& trend =
      transfers ? remote.transfer_by_load : remote.first_byte_by_load;
  const bool known = load_varied(trend, thresholds) && is_exact(trend, thresholds);
  const double of_means = (transfers ? exponent_of_means(remote) : std::nullopt).value_or(HUGE_VAL);
  if (known) reads.load_exponent = std::min(trend->slope, of_means);
  if (reads.waits_share < kMostOf) return reads;
  const bool full = (grows(trend, thresholds) && of_means >= kMostOf * thresholds.load_exponent) ||
                    waits_in_queue(remote, thresholds);
  reads.limit_known = full || known || (!transfers && is_exact(remote.answer_by_pause, thresholds));
  const bool throttled = loses(reads, refused, reads.refused_share, thresholds);
  if (loses(reads, broken, reads.broken_share, thresholds) && !(throttled && refused >= broken)) {
    reads.limit = RemoteLimit::kBroken;
  } else if (throttled) {
    reads.limit = RemoteLimit::kThrottled;
  } else if (full) {
    reads.limit = transfers ? RemoteLimit::kLink : RemoteLimit::kService;
  } else {
    reads.limit = RemoteLimit::kLatency;
  }
  return reads;
}

bool serves_more_readers(const profile::Profile& profile, int op) {
  const RemoteLimit limit = remote_reads(profile, op, RemoteThresholds{}).limit;
  return limit == RemoteLimit::kNone || limit == RemoteLimit::kLatency;
}

std::string why_no_more_readers(const profile::Profile& profile, int op) {
  const RemoteReads reads = remote_reads(profile, op, RemoteThresholds{});
  switch (reads.limit) {
    case RemoteLimit::kThrottled:
      return "the remote service refuses requests: more readers only raise the load on it";
    case RemoteLimit::kBroken:
      return "requests to the remote service have no whole answer: more readers may only lose more of them";
    case RemoteLimit::kLink:
      return "the link to the remote service is full: more readers share the same bytes a second";
    case RemoteLimit::kService:
      return "the remote service answers more slowly the more requests it has: more readers only wait longer";
    case RemoteLimit::kLatency:
      return reads.limit_known || reads.transfer_share < 0.5
                 ? ""
                 : "the number of requests in flight hardly varied, so a full link looks like slow "
                   "connections; headrace tune SCRIPT measures it";
    default:
      return "";
  }
}

}  // namespace headrace::analysis
