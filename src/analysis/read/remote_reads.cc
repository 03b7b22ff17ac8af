#include "headrace/analysis/read/remote_reads.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "numbers.h"

namespace headrace::analysis {
namespace {

/// Fewer refusals than that happen to any service.
constexpr double kMinRefused = 3;
/// Answers that a class of load needs, and the ratio between the most and the least load, to say how times depend on it.
constexpr std::uint64_t kMinAnswers = 3;
constexpr double kMinLoadRatio = 1.3;
/// Answers that one class of load counts for, at most: the many of the steady run say nothing of the dependence.
constexpr double kMaxWeight = 50;
/// Reads of each kind that a comparison of cold and warm ones needs.
constexpr std::uint64_t kMinReads = 10;

/// A time at a number of requests in flight.
struct LoadPoint {
  double in_flight;
  double time_s;
  double weight;
};

double refused_of(const profile::Remote& remote) {
  return static_cast<double>(remote.too_many_requests + remote.unavailable + remote.server_errors);
}

double waits_s(const profile::Remote& remote) {
  return remote.first_byte_s + remote.transfer_s + remote.refused_s + remote.backoff_s;
}

/// Slope of log(time) over log(requests in flight).
std::optional<double> exponent_of(const std::vector<LoadPoint>& points) {
  double weight = 0, x = 0, y = 0, least = 0, most = 0;
  for (const LoadPoint& point : points) {
    weight += point.weight;
    x += point.weight * std::log(point.in_flight);
    y += point.weight * std::log(point.time_s);
    least = least == 0 ? point.in_flight : std::min(least, point.in_flight);
    most = std::max(most, point.in_flight);
  }
  if (points.size() < 2 || most < kMinLoadRatio * least) return std::nullopt;
  double xy = 0, xx = 0;
  for (const LoadPoint& point : points) {
    const double dx = std::log(point.in_flight) - x / weight;
    xy += point.weight * dx * (std::log(point.time_s) - y / weight);
    xx += point.weight * dx * dx;
  }
  return xx > 0 ? std::optional(xy / xx) : std::nullopt;
}

double weight_of(std::uint64_t answers) { return std::min(static_cast<double>(answers), kMaxWeight); }

std::optional<double> transfer_exponent(const profile::Remote& remote) {
  std::vector<LoadPoint> points;
  for (const profile::RemoteLoad& load : remote.load) {
    if (load.transfers < kMinAnswers || load.bytes == 0 || load.transfer_s <= 0) continue;
    points.push_back({std::max(1.0, load.transferring), load.transfer_s / static_cast<double>(load.bytes),
                      weight_of(load.transfers)});
  }
  return exponent_of(points);
}

std::optional<double> first_byte_exponent(const profile::Remote& remote) {
  std::vector<LoadPoint> points;
  for (const profile::RemoteLoad& load : remote.load) {
    if (load.answers < kMinAnswers || load.first_byte_s <= 0) continue;
    points.push_back({std::max(1.0, load.waiting), load.first_byte_s, weight_of(load.answers)});
  }
  return exponent_of(points);
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

bool throttled(const RemoteReads& reads, double refused, const RemoteThresholds& thresholds) {
  return refused >= kMinRefused &&
         (reads.refused_share >= thresholds.refused_share || reads.lost_share >= thresholds.lost_share);
}

}  // namespace

bool reads_remotely(const profile::OperatorProfile& op, const RemoteThresholds& thresholds) {
  return op.remote && ratio(waits_s(*op.remote), op.busy_s) >= thresholds.waits_share;
}

RemoteReads remote_reads(const profile::Profile& profile, int index, const RemoteThresholds& thresholds) {
  RemoteReads reads;
  if (index < 0 || static_cast<std::size_t>(index) >= profile.operators.size()) return reads;
  const profile::OperatorProfile& op = profile.operators[static_cast<std::size_t>(index)];
  if (!op.remote || op.remote->requests == 0) return reads;
  const profile::Remote& remote = *op.remote;
  const double refused = refused_of(remote);
  reads.waits_share = std::min(1.0, ratio(waits_s(remote), op.busy_s));
  reads.refused_share = std::min(1.0, ratio(refused, static_cast<double>(remote.requests)));
  reads.lost_share = std::min(1.0, ratio(remote.refused_s + remote.backoff_s, op.busy_s));
  reads.transfer_share = ratio(remote.transfer_s, remote.first_byte_s + remote.transfer_s);
  reads.in_flight = mean_in_flight(remote);
  reads.bytes_per_s = ratio(static_cast<double>(remote.bytes), profile.elapsed_s);
  reads.requests_per_s = ratio(static_cast<double>(remote.requests), profile.elapsed_s);
  reads.cold_ratio = cold_ratio(remote);
  const bool transfers = reads.transfer_share >= 0.5;
  reads.load_exponent = transfers ? transfer_exponent(remote) : first_byte_exponent(remote);
  if (reads.waits_share < thresholds.waits_share) return reads;
  if (throttled(reads, refused, thresholds)) {
    reads.limit = RemoteLimit::kThrottled;
  } else if (reads.load_exponent.value_or(0) >= thresholds.load_exponent) {
    reads.limit = transfers ? RemoteLimit::kLink : RemoteLimit::kService;
  } else {
    reads.limit = RemoteLimit::kLatency;
  }
  return reads;
}

bool serves_more_readers(const profile::Profile& profile, int op) {
  return why_no_more_readers(profile, op).empty();
}

std::string why_no_more_readers(const profile::Profile& profile, int op) {
  switch (remote_reads(profile, op, RemoteThresholds{}).limit) {
    case RemoteLimit::kThrottled:
      return "the remote service refuses requests: more readers only raise the load on it";
    case RemoteLimit::kLink:
      return "the link to the remote service is full: more readers share the same bytes a second";
    case RemoteLimit::kService:
      return "the remote service answers more slowly the more requests it has: more readers only wait longer";
    default:
      return "";
  }
}

}  // namespace headrace::analysis
