#include "remote_wording.h"

#include <fmt/core.h>

#include <algorithm>

#include "headrace/analysis/words.h"
#include "wording.h"

namespace headrace::report {
namespace {

using analysis::duration;
using analysis::memory_size;
using analysis::percent;

std::string remote_sentence(const profile::OperatorProfile& op, const profile::Profile& profile) {
  constexpr double kWorthAWord = 0.1;  // requests a batch
  const profile::Remote& remote = *op.remote;
  const auto requests = static_cast<double>(remote.requests);
  const double per_batch = requests / std::max(1.0, static_cast<double>(profile.sink.steps));
  if (per_batch < kWorthAWord || profile.elapsed_s <= 0) return "";
  std::string text =
      fmt::format("{} makes {:.3g} requests a batch, ", shortened(op.name, kLongestName), per_batch);
  if (remote.latency.count > 0)
    text += fmt::format("latency {} (p90 {}, first byte {}), ", duration(remote.latency.p50_s),
                        duration(remote.latency.p90_s),
                        duration(remote.first_byte_s / std::max(1.0, static_cast<double>(remote.ok))));
  text += fmt::format("{}/s over all readers",
                      memory_size(static_cast<double>(remote.bytes) / profile.elapsed_s));
  const auto refused =
      static_cast<double>(remote.too_many_requests + remote.unavailable + remote.server_errors);
  if (refused > 0) text += fmt::format("; {} were refused", percent(refused / requests));
  if (remote.backoff_s > 0 && op.busy_s > 0)
    text += fmt::format("; pauses after refusals took {} of its time",
                        percent(std::min(1.0, remote.backoff_s / op.busy_s)));
  if (remote.connection_errors > 0)
    text += fmt::format("; {} had no whole answer",
                        percent(static_cast<double>(remote.connection_errors) / requests));
  return text;
}

}  // namespace

std::vector<std::string> remote_sentences(const profile::Profile& profile) {
  constexpr std::size_t kMax = 8;
  std::vector<std::string> sentences;
  for (const profile::OperatorProfile& op : profile.operators) {
    std::string sentence = op.remote ? remote_sentence(op, profile) : "";
    if (!sentence.empty() && sentences.size() < kMax) sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace headrace::report
