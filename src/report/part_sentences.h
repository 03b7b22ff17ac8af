// Sentences of parts that few runs have: language data, requests to remote services, parameters set in the run.
#pragma once

#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::report {

/// "workers 0 -> 4 (step 480): kept, 34.6 ms -> 10.1 ms a step (0.29 to 0.31 times as long), predicted 9.8 ms".
std::string change_sentence(const profile::ParameterChange& change);

/// What is in a batch, how long sequences are, what the ranks have; a sentence each.
std::vector<std::string> token_sentences(const profile::TokenProfile& tokens);
/// What to do about it, a sentence each.
std::vector<std::string> token_advice(const profile::TokenProfile& tokens);

/// "read makes 16 requests a batch, latency 61.2 ms (p90 64.0 ms), 3.1 MB/s over all readers; 25 % were refused", for
/// each operator with a request in ten batches at least (a screenful of them at most).
std::vector<std::string> remote_sentences(const profile::Profile& profile);

}  // namespace headrace::report
