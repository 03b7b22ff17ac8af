// The sections of the text report, each a list of lines no wider than asked.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"
#include "table.h"

namespace headrace::report {

using Lines = std::vector<std::string>;

/// Adds the table, indented.
void add_table(Lines& lines, const Table& table, std::size_t width);
/// Adds lines of `says` behind `first`, which the others are indented by; none of an empty sentence.
void add_sentence(Lines& lines, const std::string& first, const std::string& says, std::size_t width);

/// One line: the loader, epochs, steps, time, rank.
std::string title_line(const profile::Profile& profile, std::size_t width);

/// What to change; empty if nothing should be done.
Lines advice_section(const profile::Profile& profile, const analysis::Diagnosis& diagnosis,
                     std::size_t width);

/// One row per operator and one for the training step.
Lines operator_section(const profile::Profile& profile, const analysis::Diagnosis& diagnosis,
                       std::size_t width);

/// One row per queue with its levels; empty without queues.
Lines queue_section(const profile::Profile& profile, std::size_t width);

/// What the awaited batch was doing; empty without a ledger.
Lines ledger_section(const profile::Profile& profile, std::size_t width);

/// Why the device computed nothing; empty if no device trace was laid beside the run.
Lines device_section(const profile::Profile& profile, std::size_t width);

/// Stretches of the run that deserve another verdict.
Lines window_section(const analysis::Diagnosis& diagnosis, std::size_t width);

/// What other tools say of the same files, and why they are misled.
Lines opinion_section(const profile::Profile& profile, std::size_t width);

/// One sentence per rule, wrapped.
Lines evidence_section(const profile::Profile& profile, const analysis::Diagnosis& diagnosis,
                       std::size_t width);

/// What is wrong with the data and the training; empty where nothing was found or nobody watched.
Lines finding_section(const profile::Profile& profile, std::size_t width);

/// Changes of parameters in the run; empty where nothing was set.
Lines autopilot_section(const profile::Profile& profile, std::size_t width);

/// Language data; empty for other data.
Lines token_section(const profile::Profile& profile, std::size_t width);

/// What will go wrong, beside the verdict.
Lines risk_section(const analysis::Diagnosis& diagnosis, std::size_t width);

}  // namespace headrace::report
