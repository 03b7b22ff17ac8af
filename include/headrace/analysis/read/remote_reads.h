// Limits of a remote service, from an operator's requests to it: whether it refuses them, whether a link or the
// service is full, or whether each answer just takes its time.
#pragma once

#include <optional>
#include <string>

#include "headrace/analysis/read/thresholds.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Limit of the requests.
enum class RemoteLimit {
  kNone,       ///< the operator makes none, or they take little of its time
  kLatency,    ///< each answer takes its time, however many are in flight
  kLink,       ///< the bodies share a link that is full
  kService,    ///< the service answers more slowly the more requests wait
  kThrottled,  ///< it refuses requests
  kBroken,     ///< requests have no answer, or one that breaks off: refused connections, resets, time-outs
};

struct RemoteReads {
  RemoteLimit limit = RemoteLimit::kNone;
  double waits_share = 0;  ///< of the operator's busy time: in requests, and in the pauses after refused ones
  double refused_share = 0;   ///< of the requests: status 429, and 500 and more
  double broken_share = 0;    ///< of the requests: without an answer, or it broke off
  double lost_share = 0;      ///< of the busy time: refused and broken requests and the pauses after them
  double transfer_share = 0;  ///< of the answers' time: from the first byte to the last
  double in_flight = 0;       ///< mean number of requests of the run while it makes one
  double bytes_per_s = 0;     ///< of all readers
  double requests_per_s = 0;  ///< of all readers
  /// Times grow with the requests in flight to this power; empty where it cannot be told.
  std::optional<double> load_exponent;
  /// Whether the service serves more at once; false: the load hardly varied, so a full link looks like a slow one.
  bool limit_known = false;
  double cold_ratio = 0;  ///< latency of first reads / of repeated ones; 0: unknown
};

/// `op`: index into the profile's operators.
RemoteReads remote_reads(const profile::Profile& profile, int op, const RemoteThresholds& thresholds);

/// A good part of its time goes into requests.
bool reads_remotely(const profile::OperatorProfile& op);

/// Whether more readers of operator `op` may gain something, as far as its requests tell.
bool serves_more_readers(const profile::Profile& profile, int op);

/// Why not, or why that cannot be told, in a sentence for a prediction that abstains; "" if they may.
std::string why_no_more_readers(const profile::Profile& profile, int op);

}  // namespace headrace::analysis
