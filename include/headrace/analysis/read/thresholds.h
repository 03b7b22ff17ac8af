// The numbers on which verdicts depend. A share is of the run's time unless its comment says otherwise, 0 to
// 1; `_s` is seconds; all others are ratios or counts.
//
// A value whose comment names no source was chosen by judgement. `tests/verdicts/sensitivity_test.cc`
// moves each threshold by a fifth, judges the corpus again (runs recorded by benchmarks/verdicts, in
// tests/verdicts/corpus), and lists every verdict that turns: two thresholds turn three.
#pragma once

#include "headrace/profile/queue_profile.h"

namespace headrace::analysis {

/// A part is the reason for a whole, a wait or a gain, from this share of it on.
inline constexpr double kMostOf = 0.5;
/// A part is nearly all of a whole from this share on.
inline constexpr double kNearlyAll = 0.9;
/// A part below this share does not matter: equal runs differ by as much. No stored case needs another of the three.
inline constexpr double kHardly = 0.1;

/// Does the input cost the loop anything?
struct GateThresholds {
  double fewest_steps = 8;   ///< steady steps; with fewer, one odd step is more than an eighth of the mean
  double shortest_s = 0.05;  ///< steady time
  /// Share in which the loop waited for a batch that was not there. A smaller loss is within what two equal
  /// runs differ by (docs/benchmarks.md: 0.9 % where items sleep, 11.5 % where they compute). The corpus has
  /// two input-bound runs at 0.057 and 0.060.
  double starved_share = 0.05;
  /// Share of the step for fetching finished batches, or for copying them to the device inside the step.
  /// Worker processes cost a healthy loop 1 to 2 ms a batch, 3 to 8 % of steps of 10 to 40 ms
  /// (docs/verdicts.md). The corpus has a healthy loader between 0.105 and 0.12.
  double served_share = 0.15;
  /// Median wait below which a loader that shows nothing of its inside may only be handing batches over.
  /// Receiving the file descriptors of a batch takes 1.1 ms (measured).
  double opaque_handoff_s = 2.5e-3;
  /// Share of what is estimated rather than measured: wait and stretched compute together, where threads contend for the
  /// interpreter lock; the loop's waits for a core that the input's operators have.
  double estimated_share() const noexcept { return 2 * starved_share; }
};

/// Do threads wait for the interpreter lock? Source: measurements of 1, 2 and 4 spinning threads. The corpus
/// has three such processes, at 1.01 cores each.
struct LockThresholds {
  double busy_threads = 1.2;  ///< mean number, the loop included; one thread alone has nothing to wait for
  /// Share of the probes that found the lock taken. One spinning thread holds it at nearly every probe; C
  /// code that releases the lock holds it at next to none.
  double taken_share = kMostOf;
  double off_cpu_share = 0.3;   ///< of the busy time of computing threads: neither running nor runnable
  double computes_share = 0.2;  ///< of its busy time on a core; an operator below it sleeps or reads
  // These alone decide if the waits of threads were recorded.
  double waits_share = 0.25;  ///< of the busy time of the operator with the largest demand
  /// Time that an operator holds the lock / its CPU time, below which it computes without it.
  double without_lock = 0.03;
};

/// The operator that demand, queues and ledger name.
struct CandidateThresholds {
  double queue_is_high = 0.5;  ///< mean level / capacity; above it, its consumer does not keep up
  /// Level readings of a sampled queue; fewer of them prove nothing.
  double fewest_samples = static_cast<double>(profile::kFewestLevelSamples);
};

/// Is the candidate's rate too low, or do its times only vary?
struct RateThresholds {
  double too_slow = 1.12;  ///< demand / compute; above it the rate is too low, whatever the spread
};

/// How does the run change? A phase has as many steps as a run needs (`gate.fewest_steps`).
struct PhaseThresholds {
  // Two operators in turn.
  double fewest_phases = 4;
  double drift = 3;          ///< variance between phases / variance by chance, of one of them
  double against = kMostOf;  ///< correlation of the two demands, negative
  double noise = 0.01;       ///< variance between phases that every run has: (10 %)^2
  // Bound in some phases only.
  double slower = 1.4;  ///< demand in the phases that wait / demand in the calm ones
  /// Busy share in calm phases; above it the operator only hides behind a full buffer. The corpus has such a
  /// run (prefilled_501).
  double calm_busy_share = kNearlyAll;
};

/// Are there rare items of another kind? Of an exponential distribution, 18 % of the items are between usual
/// and slow, and 14 % of the time is in slow ones: that is no such tail.
struct TailThresholds {
  double most_items = 0.15;       ///< share of the items
  double most_between = kHardly;  ///< share of the items that are neither usual nor slow
  double waits = 0.8;  ///< for a core or the interpreter lock / what the slow items take more than usual ones
};

/// Is one worker slower than its siblings?
struct WorkerThresholds {
  double slower = 1.5;       ///< mean / mean of its siblings
  double beyond_chance = 4;  ///< standard errors; by chance 1 in 30,000
  double fewest_items = 5;   ///< of each worker that is compared
};

/// Are the cores, or the quota, spent?
struct CpuThresholds {
  double spent = kNearlyAll;         ///< of the cores, by this run and what others take from it
  double throttled_share = kHardly;  ///< stopped by the quota
};

/// Does the operator wait for a remote service, and would the service serve more readers?
struct RemoteThresholds {
  /// Share of requests refused because of load, failed in the service, or without a whole answer. One in a hundred
  /// costs little.
  double refused_share = kHardly;
  /// Share of busy time in refused attempts and pauses after them.
  double lost_share = kHardly;
  /// Exponent with which times grow with the requests in flight, and seconds by which an answer is shorter for each
  /// second that its reader came later. 0 for latency (measured: 0.0 to 0.1), 1 for a full link or a busy service; the
  /// few different loads of a short run show less of it (measured: from 0.45).
  double load_exponent = 0.3;
  /// Standard error of these from which on they say nothing.
  double load_error = 0.2;
  /// Standard deviation of the logarithm of the load from which on these exponents mean something. Readers that never
  /// pause have 0.01 to 0.02, and slopes of any size.
  double load_spread = 0.05;
  /// Cold reads are slow if they take so many times what repeated ones take.
  double cold_ratio = 1.5;
};

/// Do workers queue for one lock? More of them would make the queue longer, so less than most of their time decides it.
struct SharedLockThresholds {
  double lock_share = 0.2;  ///< of its busy time, acquiring; a lock that is free takes microseconds
};

/// Do worker processes and the threads of their libraries exceed the cores?
struct OversubscribedThresholds {
  double elsewhere_share = 0.3;  ///< of their CPU time, in threads that run no operator
};

/// May workers use fewer cores than the loop, and suffer from it?
struct PinnedThresholds {
  double queueing_share = 0.2;  ///< of its busy time waiting for a core
};

/// Is memory short?
struct MemoryThresholds {
  double pressure_share = kHardly;  ///< of the time, some task waited for memory; 0.00 where it suffices
};

/// Do some workers of a stream have less data than others?
struct ShardThresholds {
  double out_of_data_share = 0.15;  ///< of the workers' time, all of them together
};

/// Risks. None of these decides a verdict.
struct RiskThresholds {
  double shared_memory_share = 0.8;  ///< of what is free and in flight, needed by batches in flight
  double memory_left_s = 86'400;     ///< until free memory ends, as fast as it shrinks now
  double stuck_s = 5;                ///< at one item
  double stuck_times = 10;           ///< the same / the longest item before
  double startup_s = 10;
  double startup_share = 0.3;      ///< of all the time, waiting for first batches
  double collection_share = 0.05;  ///< of a step, in the garbage collector of the loop's thread
};

/// Is the wait one to three long stalls?
struct StallThresholds {
  double least_s = 0.1;
  double next = 0.4;     ///< the next longest wait / the shortest stall
  double worth_s = 0.3;  ///< lost in a healthy run; below it nothing is said
};

/// Does the loop stop now and then for work of its own?
struct PauseThresholds {
  double times_as_long = 5;   ///< compute / the usual one
  double of_time = kHardly;   ///< of the time, in such steps; below it nothing is said
  double most_steps = 0.125;  ///< of the steps; more are no exceptions
  double fewest = 3;          ///< such steps that show a period
  double uneven = kHardly;    ///< a gap between two of them may differ by that part from the usual one
};

struct Thresholds {
  GateThresholds gate;
  LockThresholds lock;
  CandidateThresholds candidate;
  RateThresholds rate;
  PhaseThresholds phases;
  TailThresholds tail;
  WorkerThresholds worker;
  CpuThresholds cpu;
  RemoteThresholds remote;
  SharedLockThresholds shared_lock;
  OversubscribedThresholds oversubscribed;
  PinnedThresholds pinned;
  MemoryThresholds memory;
  ShardThresholds shards;
  RiskThresholds risk;
  StallThresholds stall;
  PauseThresholds pauses;
};

}  // namespace headrace::analysis
