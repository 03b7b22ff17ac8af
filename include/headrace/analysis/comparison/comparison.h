// Two runs side by side: what is set differently, what takes longer, and how sure that is.
//
//     Comparison found = compare(before, after);
//     if (found.step.changed) printf("%.2f times the step\n", found.step.ratio);
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// One figure of both sides: the mean where a side has several runs.
struct ComparedFigure {
  double a = 0;
  double b = 0;
  double ratio = 1;  ///< b / a; low <= ratio <= high, the interval that 99 % of equal runs fall into
  double low = 0;
  double high = 0;
  /// The interval leaves 1 out, and the difference is worth a word (2 %).
  bool changed = false;
};

struct ComparedOperator {
  std::string name;
  /// Its demand: busy time per batch / workers, seconds. Empty where it is on one side only, or was not timed.
  std::optional<ComparedFigure> demand;
  bool in_a = false;
  bool in_b = false;
  int workers_a = 0;
  int workers_b = 0;
};

struct ComparedSetting {
  std::string name;
  std::string a;  ///< as it is written; "": that side does not have it
  std::string b;
};

struct ComparedVerdict {
  std::string kind;
  std::string op;  ///< "": none
  std::string cause;
  double confidence = 0;
};

struct Comparison {
  std::string name_a = "A";  ///< what the sides are called in text and page
  std::string name_b = "B";
  std::string loader_a;
  std::string loader_b;
  std::size_t runs_a = 0;
  std::size_t runs_b = 0;
  /// Why nothing is said of the steps; empty: enough of both was recorded.
  std::string reason;
  ComparedFigure step;                      ///< seconds a step
  ComparedFigure wait;                      ///< of that in GetNext
  ComparedFigure compute;                   ///< of that in the training step
  std::vector<ComparedOperator> operators;  ///< the largest change of demand first
  std::vector<ComparedSetting> settings;    ///< those that differ
  ComparedVerdict verdict_a;
  ComparedVerdict verdict_b;
  std::vector<std::string> notes;  ///< what makes the comparison unsure: other processes, another machine
};

/// Spread of a run's mean is taken from its windows in time (batch means: Law, Simulation Modeling and
/// Analysis, 9.5), of several runs from the runs themselves; both are widened by what equal runs differ by on
/// a quiet machine. Thread-safe; never fails. Neither side may be empty. `name_a`, `name_b`: the runs' names.
Comparison compare(std::span<const profile::Profile> a, std::span<const profile::Profile> b,
                   const std::string& name_a = "A", const std::string& name_b = "B");

}  // namespace headrace::analysis
