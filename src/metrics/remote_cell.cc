#include "headrace/metrics/remote_cell.h"

#include <algorithm>
#include <cmath>

namespace headrace::metrics {
namespace {

std::int64_t between(std::int64_t from, std::int64_t to) { return std::max<std::int64_t>(0, to - from); }

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

std::int64_t milli(double count) { return static_cast<std::int64_t>(std::max(1.0, count) * 1000); }

}  // namespace

void RemoteCell::add(const RemoteRequest& request, bool counts) noexcept {
  const RemoteAnswer answer = answer_of(request.status);
  const bool is_ok = answer == RemoteAnswer::ok;
  const std::int64_t first_byte = between(request.began_ns, request.first_byte_ns);
  const std::int64_t transfer = between(request.first_byte_ns, request.ended_ns);
  const std::int64_t whole = between(request.began_ns, request.ended_ns);
  if (is_ok) {
    RemoteLoadCell& waited = load[RemoteLoadClasses::index(request.waiting)];
    waited.answers.add(1);
    waited.waiting_milli.add(milli(request.waiting));
    waited.first_byte_ns.add(first_byte);
    first_byte_by_load.add(std::log(std::max(1.0, request.waiting)),
                           std::log1p(static_cast<double>(first_byte)));
    if (request.pause_ns >= 0 && request.pause_ns <= whole)
      answer_by_pause.add(seconds(request.pause_ns), seconds(whole));
    if (request.bytes > 0) {
      RemoteLoadCell& shared = load[RemoteLoadClasses::index(request.transferring)];
      shared.transfers.add(1);
      shared.transferring_milli.add(milli(request.transferring));
      shared.bytes.add(request.bytes);
      shared.transfer_ns.add(transfer);
      const double ps_a_byte = 1000 * static_cast<double>(transfer) / static_cast<double>(request.bytes);
      transfer_by_load.add(std::log(std::max(1.0, request.transferring)), std::log1p(ps_a_byte));
    }
  }
  if (!counts) return;
  answers[static_cast<std::size_t>(answer)].add(1);
  bytes.add(request.bytes);
  if (request.is_retry) retries.add(1);
  backoff_ns.add(request.backoff_ns);
  if (!is_ok) {
    refused_ns.add(whole);
    return;
  }
  first_byte_ns.add(first_byte);
  transfer_ns.add(transfer);
  latency.add_shared(whole);
  (request.is_repeated ? repeated_reads : first_reads).add(1);
  (request.is_repeated ? repeated_read_ns : first_read_ns).add(whole);
}

}  // namespace headrace::metrics
