// The report as one page: verdict and advice first, then pictures of the step, the pipeline, its queues and
// workers, the wait over time, the evidence, and the tables behind the pictures. docs/report.md explains
// each.
//
//     std::ofstream("report.html") << report::to_html(profile, analysis::diagnose(profile));
#pragma once

#include <string>

#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/analysis/what_if/curve.h"
#include "headrace/profile/history.h"
#include "headrace/profile/profile.h"

namespace headrace::report {

struct HtmlOptions {
  /// False: one `<div>` with its style sheet, for a notebook's cell. Its rules reach nothing outside of it.
  bool whole_page = true;
  /// Of the same run: for a lane per worker, and the longest waits close up. Null: they are left out.
  const profile::History* history = nullptr;
  /// What the lanes show, in seconds since the first GetNext; an empty or impossible range: the last 20 steps.
  double from_s = 0;
  double to_s = 0;
  /// The page's address up to where "from=1.5&to=2.5" follows, if somebody answers there: the lanes then have
  /// links to other ranges.
  std::string range_link = {};
  /// Null: it is simulated for this page.
  const analysis::StepCurve* curve = nullptr;
};

/// UTF-8, without script, and nothing is loaded from anywhere: the file opens offline and can be mailed.
/// Names are escaped, shortened in pictures and whole (up to 1000 columns) in the tables. Up to 64 operators,
/// queues and workers are drawn; what is left out is counted. Thread-safe; never fails.
std::string to_html(const profile::Profile& profile, const analysis::Diagnosis& diagnosis,
                    const HtmlOptions& options = {});

/// The style sheet of these pages, for others in the same looks: rules below the class `headrace`.
std::string page_style();

}  // namespace headrace::report
