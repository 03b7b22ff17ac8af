// Sentences of the evidence that stand beside every verdict.
#pragma once

#include "headrace/analysis/verdict/causes/cause.h"

namespace headrace::analysis {

/// Those of the gate, the queues, the demand and the ledger; a queue that still hides the wait, with its levels.
void add_evidence(const Case& facts, Diagnosis& diagnosis);
/// The cores, who used them, and the start-up, which no other figure contains.
void add_machine(const Case& facts, Diagnosis& diagnosis);
/// A rank that does not starve may still be held up by one that does, where they meet at every step.
void add_waiting_rank(const Case& facts, Diagnosis& diagnosis);
/// A dataset that decodes and transforms in its own __getitem__ is one operator: the verdict on it is not one
/// on its storage.
void add_undivided(const Case& facts, Diagnosis& diagnosis);
/// Which functions the bottleneck's time goes to.
void add_functions(const profile::Profile& profile, Diagnosis& diagnosis);
/// Steps of the loop itself that take many times as long as the usual one.
void add_long_steps(const Case& facts, Diagnosis& diagnosis);

}  // namespace headrace::analysis
