// The content of a report's page as one JSON document for templates: figures, and the sentences of the text.
#pragma once

#include <string>

#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/history.h"
#include "headrace/profile/profile.h"

namespace headrace::report {

struct PageOptions {
  /// The history of the same run: a lane per worker, and the longest waits close up. Null: they are left out.
  const profile::History* history = nullptr;
  /// The range of the lanes, in seconds since the first GetNext; an empty or impossible one: the last 20 steps.
  double from_s = 0;
  double to_s = 0;
};

/// {"profile", "diagnosis"} as in `to_json`, with shortened names in sentences; beside them sentences, the graph
/// of stages, queues of a kind as one, the states that are shown of each operator, worker processes, and lanes.
/// Thread-safe; never fails.
std::string page_json(const profile::Profile& profile, const analysis::Diagnosis& diagnosis,
                      const PageOptions& options = {});

}  // namespace headrace::report
