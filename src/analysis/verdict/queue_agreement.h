// The queues beside the verdict: whether a person who reads their levels comes to the same operator, and if not, why.
#pragma once

#include <optional>

#include "headrace/analysis/verdict/causes/cause.h"
#include "headrace/analysis/verdict/diagnosis.h"

namespace headrace::analysis {

/// The rule's own opinion, as if the verdict agreed; empty where it has none.
std::optional<QueueRule> rule_of_queues(const profile::Profile& profile, const QueueOpinion& queues);

/// Sets `diagnosis.queue_rule`; where it does not agree, the line of the evidence says so, too.
void compare_with_queues(const Case& facts, Diagnosis& diagnosis);

}  // namespace headrace::analysis
