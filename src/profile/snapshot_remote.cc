#include "profile/snapshot_parts.h"

#include <algorithm>
#include <cmath>

#include "profile/totals.h"

namespace headrace::profile {
namespace {

std::uint64_t whole(double count) { return static_cast<std::uint64_t>(count); }

/// Empty where x hardly varies: rounding is all that is left of the sums then.
std::optional<RemoteTrend> trend_of(const TrendFigures& sums) {
  constexpr double kMinPoints = 8;
  constexpr double kRounding = 1e-9;
  if (sums.points < kMinPoints) return std::nullopt;
  const double xx = sums.xx - sums.x * sums.x / sums.points;
  const double xy = sums.xy - sums.x * sums.y / sums.points;
  const double yy = sums.yy - sums.y * sums.y / sums.points;
  if (!(xx > kRounding * sums.xx) || xx <= 0) return std::nullopt;
  const double slope = xy / xx;
  const double scatter = std::max(0.0, yy - slope * xy) / (sums.points - 2);
  return RemoteTrend{slope, std::sqrt(scatter / xx), std::sqrt(xx / sums.points)};
}

double mean(double sum, double count) { return count > 0 ? sum / count : 0; }

std::vector<RemoteLoad> load_of(const RemoteTotals& total) {
  constexpr double kMilli = 1e-3;
  std::vector<RemoteLoad> rows;
  for (const RemoteLoadFigures& load : total.load) {
    if (load.answers <= 0 && load.transfers <= 0) continue;
    RemoteLoad row;
    copy_totals<RemoteLoadFigures>(row, load);
    row.waiting = mean(load.waiting_milli * kMilli, load.answers);
    row.first_byte_s = mean(load.first_byte_ns * kSecond, load.answers);
    row.transferring = mean(load.transferring_milli * kMilli, load.transfers);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

std::optional<Remote> remote_of(const SegmentFigures& figures, std::uint32_t owner) {
  RemoteTotals total;
  for (const RemoteFigures& remote : figures.remotes) {
    if (remote.owner == owner) add<RemoteTotals>(total, remote);
  }
  const auto answers = [&](metrics::RemoteAnswer answer) {
    return whole(total.answers[static_cast<std::size_t>(answer)]);
  };
  using enum metrics::RemoteAnswer;
  Remote remote;
  for (const double count : total.answers) remote.requests += whole(count);
  if (remote.requests == 0) return std::nullopt;
  copy_totals<RemoteTotals>(remote, total);
  remote.ok = answers(ok);
  remote.redirects = answers(redirect);
  remote.client_errors = answers(client_error);
  remote.too_many_requests = answers(too_many);
  remote.server_errors = answers(server_error);
  remote.unavailable = answers(unavailable);
  remote.connection_errors = answers(no_connection);
  remote.latency = total.latency.latency();
  remote.load = load_of(total);
  remote.first_byte_by_load = trend_of(total.first_byte_by_load);
  remote.transfer_by_load = trend_of(total.transfer_by_load);
  remote.answer_by_pause = trend_of(total.answer_by_pause);
  return remote;
}

}  // namespace headrace::profile
