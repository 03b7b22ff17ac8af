// The sections of the text report, each a list of lines no wider than asked.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "block.h"
#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"
#include "table.h"

namespace headrace::report {

/// Adds the table, indented.
void add_table(Lines& lines, const Table& table, std::size_t width);

/// One line: the loader, epochs, steps, time, rank.
std::string title_line(const profile::Profile& profile, std::size_t width);

/// The advice; empty if nothing should be done.
Lines advice_section(const profile::Profile& profile, const analysis::Diagnosis& diagnosis,
                     std::size_t width);

/// One row per operator and one for the training step.
Lines operator_section(const profile::Profile& profile, const analysis::Diagnosis& diagnosis,
                       std::size_t width);

/// One row per worker process, of many the slowest and the fastest; empty if there are fewer than two.
Lines worker_section(const profile::Profile& profile, std::size_t width);

/// One row per queue with its levels; empty without queues.
Lines queue_section(const profile::Profile& profile, std::size_t width);

/// Stretches of the run that deserve another verdict.
Lines window_section(const analysis::Diagnosis& diagnosis, std::size_t width);

}  // namespace headrace::report
