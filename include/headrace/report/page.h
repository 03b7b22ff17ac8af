// What a page of a report shows, as one JSON document for templates: figures, and sentences as the text has them.
#pragma once

#include <string>

#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/history.h"
#include "headrace/profile/profile.h"

namespace headrace::report {

struct PageOptions {
  /// Of the same run: for a lane per worker, and the longest waits close up. Null: they are left out.
  const profile::History* history = nullptr;
  /// What the lanes show, in seconds since the first GetNext; an empty or impossible range: the last 20 steps.
  double from_s = 0;
  double to_s = 0;
};

/// {"profile", "diagnosis"} as in `to_json`, with shortened names in sentences; beside them sentences, the graph
/// of stages, queues of a kind as one, the states that are shown of each operator, worker processes, and lanes.
/// Thread-safe; never fails.
std::string page_json(const profile::Profile& profile, const analysis::Diagnosis& diagnosis,
                      const PageOptions& options = {});

}  // namespace headrace::report
