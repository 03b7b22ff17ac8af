// The steps of diagnose(), in the order in which it takes them. Each has its own source.
#pragma once

#include <optional>
#include <vector>

#include "headrace/analysis/read/thresholds.h"
#include "headrace/analysis/verdict/causes/cause.h"
#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

// candidate.cc: which operator the rules point at, before the causes are asked.

/// Sets candidate, intermittent, utilisation and pressure; and, where a loader's floor turns out to be its
/// workers' doing, the gate's handoff_only and floor_by_workers. Gate, demand, queues, ledger, phases and
/// shapes are there already.
void point_at_candidate(Case& facts);

// remarks.cc: sentences of the evidence that stand beside every verdict.

/// Those of the gate, the queues, the demand and the ledger; a queue that still hides the wait, with its levels.
void add_evidence(const Case& facts, Diagnosis& diagnosis);
/// The cores, who used them, and the start-up, which no other figure contains.
void add_machine(const Case& facts, Diagnosis& diagnosis);
/// A rank that does not starve may still be held up by one that does, where they meet at every step.
void add_waiting_rank(const Case& facts, Diagnosis& diagnosis);
/// A thread of the program iterates the loader: the waits are its own.
void add_handing_thread(const Case& facts, Diagnosis& diagnosis);
/// A dataset that decodes and transforms in its own __getitem__ is one operator: the verdict on it is not one
/// on its storage.
void add_undivided(const Case& facts, Diagnosis& diagnosis);
/// Functions that the bottleneck's time goes to.
void add_functions(const profile::Profile& profile, Diagnosis& diagnosis);
/// Steps of the loop itself that take many times as long as the usual one.
void add_long_steps(const Case& facts, Diagnosis& diagnosis);

// batch_windows.cc: n batches at once, then nothing until the next n are made.

/// The sign in the evidence, and what to do about it. Nothing where there are no windows.
void add_batch_windows(const Case& facts, Diagnosis& diagnosis);

// code_changes.cc: a change of the program where no parameter helps; the recording shows how items are made.

/// For the operator that is named, in its place among the advice: predicted as if the work that goes had cost nothing.
void add_code_changes(const Case& facts, Diagnosis& diagnosis);

// confidence.cc: the distance of the verdict from the next one, in what equal runs differ by.

double confidence_when_healthy(const Case& facts);
double confidence_when_bound(const Case& facts, const Diagnosis& diagnosis, double certainty);

// remarks.cc: where to set the advice of a cause, what it costs, what comes after it.

/// Every worker of a stream that does not ask for its number reads all of it, so more workers make the epoch longer.
void add_undivided_stream(const Case& facts, Diagnosis& diagnosis);
/// A trainer's own parameters set the loaders that it makes; else the line that made the loader is the place.
void add_where_to_set(const Case& facts, Diagnosis& diagnosis);
/// A healthy loop may still keep the device waiting: it copies each batch itself, and has work of its own.
void add_device_gap(const Case& facts, Diagnosis& diagnosis);
/// Once the first advice is followed, what next: only where that one names one number of workers (or takes
/// loading out of the loop) for the whole run. Right behind it, before its alternatives.
void add_plan(const Case& facts, Diagnosis& diagnosis);
/// Memory cost of the advice, where it lets more batches wait.
void add_memory(const Case& facts, Diagnosis& diagnosis);
/// A prediction holds while other processes go on as they did, so the first change comes with a way to measure it.
void add_how_to_measure(const Case& facts, Diagnosis& diagnosis);
/// A loader whose verdict came with nothing that shortens the step may have too many workers.
void add_fewer_workers(const Case& facts, Diagnosis& diagnosis);

// queue_agreement.cc: whether a person who reads the queues' levels comes to the same operator, and if not, why.

/// The rule's own opinion, as if the verdict agreed; empty where it has none.
std::optional<QueueRule> rule_of_queues(const profile::Profile& profile, const QueueOpinion& queues);

/// Sets `diagnosis.queue_rule`; where it does not agree, the line of the evidence says so, too.
void compare_with_queues(const Case& facts, Diagnosis& diagnosis);

// verdict_windows.cc: where in time the verdict differs from that on the whole run.

/// At most 32, neighbours of one verdict joined. Stretches that chance explains are left out.
std::vector<VerdictWindow> verdict_windows(const Case& facts, const Diagnosis& whole);

// risks.cc: faults to come, beside the verdict; none of them is the bottleneck now.

/// Every risk that the profile shows, in the order of `RiskKind`; empty if it shows none.
std::vector<Risk> risks_of(const profile::Profile& profile, const RiskThresholds& thresholds = {});

// causes/changing.cc: the sampler's part of the start of each epoch.

/// Time of a sampler before the first batch of an epoch, if it makes the whole order then.
struct FirstDraw {
  std::string sampler;
  double seconds = 0;  ///< in one epoch
};

/// Whether a sampler's first draws are half of `startup_s` of all epochs, or more. No sampler: they are not.
FirstDraw first_draw_of(const profile::Profile& profile, double startup_s);

/// Advice against it.
std::string cure_of(const FirstDraw& draw);

}  // namespace headrace::analysis
