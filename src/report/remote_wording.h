// Requests to remote services, in a sentence per operator.
#pragma once

#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::report {

/// "read makes 16 requests a batch, latency 61.2 ms (p90 64.0 ms), 3.1 MB/s over all readers; 25 % were refused", for
/// each operator with a request in ten batches at least (a screenful of them at most).
std::vector<std::string> remote_sentences(const profile::Profile& profile);

}  // namespace headrace::report
