// The wall clock of a run in words, for text and page.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::report {

/// Whether something that comes again and again, other than training steps and waits for their batches, is the largest
/// part: then it comes first.
bool leads(const std::vector<profile::BudgetPart>& budget);
/// Training steps and the waits for their batches, not what stands beside them.
bool is_training(const profile::BudgetPart& part);
/// Those of one percent of the wall clock and more, twelve at most.
std::vector<const profile::BudgetPart*> rows_of(const std::vector<profile::BudgetPart>& budget);
/// Whether it has a good part at all: below, the reports leave the budget to the JSON.
bool is_worth_saying(const std::vector<profile::BudgetPart>& budget);

/// "training steps", "checkpoints".
std::string part_words(const profile::BudgetPart& part);
/// Where, how often: "save (train.py:52), every 40 steps".
std::string place_words(const profile::BudgetPart& part);
/// "evaluate half as often (evaluate (train.py:41)): saves up to 1.90 s"; "" if nothing is to be done.
std::string cure_words(const profile::BudgetPart& part);

/// Their seconds, all together.
double wall_s(const std::vector<profile::BudgetPart>& budget);

/// Rows of text, headed, no wider than `width`; empty where there is nothing worth saying.
std::vector<std::string> budget_section(const profile::Profile& profile, std::size_t width);

}  // namespace headrace::report
