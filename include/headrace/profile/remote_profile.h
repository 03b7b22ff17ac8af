// Requests of an operator to a remote service. Declared as figure.h says; part of profile.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/profile/figure.h"
#include "headrace/profile/latency.h"

namespace headrace::profile {

struct RemoteLoad {
  std::uint64_t answers = 0;
  double waiting = 0;
  double first_byte_s = 0;
  std::uint64_t transfers = 0;
  double transferring = 0;
  std::uint64_t bytes = 0;
  double transfer_s = 0;
};

constexpr About about(Of<RemoteLoad>) {
  return {"RemoteLoad",
          "Successful answers by the number of requests that the run had in flight meanwhile, all processes "
          "together; start-up included."};
}
template <class Visit>
constexpr void figures_of(Of<RemoteLoad>, Visit&& figure) {
  figure("answers", &RemoteLoad::answers, {"Answers before whose first byte about so many requests waited."});
  figure("waiting", &RemoteLoad::waiting, {"Mean number of these requests, itself included; 0: no answers."});
  figure("first_byte_s", &RemoteLoad::first_byte_s,
         {"Mean time until the first byte of these answers. In proportion to `waiting`: the service "
          "computes, or "
          "queues requests; constant: it is latency."});
  figure("transfers", &RemoteLoad::transfers, {"Answers beside whose body about so many others arrived."});
  figure("transferring", &RemoteLoad::transferring,
         {"Mean number of these bodies, itself included; 0: none."});
  figure("bytes", &RemoteLoad::bytes, {"Bytes of these bodies."});
  figure(
      "transfer_s", &RemoteLoad::transfer_s,
      {"Time from the first byte to the last, all together. Per byte, in proportion to `transferring`: they "
       "share a full link; constant: each connection has its own rate."});
}

struct RemoteTrend {
  double slope = 0;
  double error = 0;
  double spread = 0;
};

constexpr About about(Of<RemoteTrend>) {
  return {"RemoteTrend",
          "How one figure of the answers depends on another, by a straight line through all of them."};
}
template <class Visit>
constexpr void figures_of(Of<RemoteTrend>, Visit&& figure) {
  figure("slope", &RemoteTrend::slope, {"Of the line.", &kName});
  figure("error", &RemoteTrend::error,
         {"Standard error of the slope: large where the other figure hardly varied.", &kName});
  figure("spread", &RemoteTrend::spread,
         {"Standard deviation of the other figure. A slope over next to none (under 0.1 for a load) is one "
          "of chance "
          "or of the counting.",
          &kName});
}

struct Remote {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  std::uint64_t ok = 0;
  std::uint64_t redirects = 0;
  std::uint64_t client_errors = 0;
  std::uint64_t too_many_requests = 0;
  std::uint64_t server_errors = 0;
  std::uint64_t unavailable = 0;
  std::uint64_t connection_errors = 0;
  std::uint64_t retries = 0;
  double backoff_s = 0;
  double refused_s = 0;
  double first_byte_s = 0;
  double transfer_s = 0;
  Latency latency;
  std::uint64_t first_reads = 0;
  double first_reads_s = 0;
  std::uint64_t repeated_reads = 0;
  double repeated_reads_s = 0;
  std::vector<RemoteLoad> load;
  std::optional<RemoteTrend> first_byte_by_load = std::nullopt;
  std::optional<RemoteTrend> transfer_by_load = std::nullopt;
  std::optional<RemoteTrend> answer_by_pause = std::nullopt;
};

constexpr About about(Of<Remote>) {
  return {
      "Remote",
      "Requests to a remote service (HTTP, object stores), start-up left out. Each attempt is one request."};
}
template <class Visit>
constexpr void figures_of(Of<Remote>, Visit&& figure) {
  figure("requests", &Remote::requests, {"Attempts, answered or not."});
  figure("bytes", &Remote::bytes, {"Bytes of the answers' bodies, as they came over the network."});
  figure("ok", &Remote::ok, {"Answered with a status below 300."});
  figure("redirects", &Remote::redirects, {"Answered with a status of 300 to 399."});
  figure("client_errors", &Remote::client_errors, {"Answered with a status of 400 to 499, 429 left out."});
  figure("too_many_requests", &Remote::too_many_requests,
         {"Refused with status 429: the service limits the rate."});
  figure("server_errors", &Remote::server_errors, {"Answered with a status of 500 and more, 503 left out."});
  figure("unavailable", &Remote::unavailable,
         {"Refused with status 503: the service is overloaded, or slows down."});
  figure("connection_errors", &Remote::connection_errors,
         {"Without a whole answer: no connection, or it broke."});
  figure("retries", &Remote::retries, {"Attempts of what had been refused just before."});
  figure(
      "backoff_s", &Remote::backoff_s,
      {"Time between a refused attempt and the next one. A good part of the operator's `busy_s`: the service "
       "is throttled, and more readers make that worse."});
  figure("refused_s", &Remote::refused_s,
         {"Time in flight of attempts that were not answered with success."});
  figure(
      "first_byte_s", &Remote::first_byte_s,
      {"Time from the request to the first byte of a successful answer, all together. Most of the latency: "
       "the service or the way to it is slow, not the link full."});
  figure("transfer_s", &Remote::transfer_s,
         {"Time from the first byte to the last of successful answers, all together. The reader's own pauses "
          "while it takes the body are in it."});
  figure("latency", &Remote::latency, {"From the request to the last byte of a successful answer."});
  figure("first_reads", &Remote::first_reads, {"Successful reads of what the run had not read before."});
  figure("first_reads_s", &Remote::first_reads_s, {"Latency of these, all together."});
  figure("repeated_reads", &Remote::repeated_reads, {"Successful reads of what the run had read before."});
  figure("repeated_reads_s", &Remote::repeated_reads_s,
         {"Latency of these, all together. Far less each than of first reads: a cache was cold."});
  figure("load", &Remote::load, {"How the answers depend on the number of requests in flight."});
  figure("first_byte_by_load", &Remote::first_byte_by_load,
         {"Exponent with which the time to the first byte grows with the requests that wait. Near 1: the "
          "service "
          "is busy; near 0: it is latency. Null where that number never varied."});
  figure(
      "transfer_by_load", &Remote::transfer_by_load,
      {"The same of the time per byte and the bodies that arrive at once. Near 1: they share a full link."});
  figure(
      "answer_by_pause", &Remote::answer_by_pause,
      {"How much longer an answer takes where its reader had paused longer before it, s per s. Near -1: the "
       "request waits in a queue of the service, so a busy service sets the pace; near 0: it does not "
       "wait."});
}

}  // namespace headrace::profile
