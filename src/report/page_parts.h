// The parts of a page's document that take more than a few lines to make.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "headrace/profile/profile.h"
#include "headrace/report/page.h"

namespace headrace::report {

/// A queue's name, ends and level.
nlohmann::json queue_json(const profile::QueueProfile& queue);

/// Columns of operators from left to right, each with the queues that lead there. Every operator is in one box,
/// by its place in the profile; every queue is before one stage; the training step is the last box, without
/// operators.
nlohmann::json graph_json(const profile::Profile& profile);

/// Null where the history has no GetNext of this loader. Times are seconds since the first one.
nlohmann::json lanes_json(const profile::Profile& profile, const PageOptions& options);

}  // namespace headrace::report
