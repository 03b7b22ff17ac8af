// What completes the advice of a cause: where to set it, what it costs, what comes after it.
#pragma once

#include "headrace/analysis/verdict/causes/cause.h"

namespace headrace::analysis {

/// Every worker of a stream that does not ask for its number reads all of it, so more workers make the epoch longer.
void add_undivided_stream(const Case& facts, Diagnosis& diagnosis);
/// A trainer's own parameters set the loaders that it makes; else the line that made the loader is the place.
void add_where_to_set(const Case& facts, Diagnosis& diagnosis);
/// A healthy loop may still keep the device waiting: it copies each batch itself, and has work of its own.
void add_device_gap(const Case& facts, Diagnosis& diagnosis);
/// Once the first advice is followed, what next: only where that one names one number of workers (or takes
/// loading out of the loop) for the whole run. Right behind it, before its alternatives.
void add_plan(const Case& facts, Diagnosis& diagnosis);
/// What the advice costs in memory, where it lets more batches wait.
void add_memory(const Case& facts, Diagnosis& diagnosis);
/// A prediction holds while other processes go on as they did, so the first change comes with a way to measure it.
void add_how_to_measure(const Case& facts, Diagnosis& diagnosis);
/// A loader whose verdict came with nothing that shortens the step may have too many workers.
void add_fewer_workers(const Case& facts, Diagnosis& diagnosis);

}  // namespace headrace::analysis
