// The parts of the page, from top to bottom. Each writes one <section>, or nothing if it has nothing to
// say.
#pragma once

#include <functional>
#include <string>

#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"
#include "headrace/report/html.h"
#include "headrace/report/tuning.h"
#include "markup.h"

namespace headrace::report {

/// What every part may read. The diagnosis' sentences hold shortened names.
struct Subject {
  const profile::Profile& profile;
  const analysis::Diagnosis& diagnosis;

  bool is_bottleneck(const profile::OperatorProfile& op) const {
    return diagnosis.op && *diagnosis.op == op.name;
  }
};

/// Drawn at most; what is left out is counted.
inline constexpr std::size_t kMaxDrawn = 64;
/// Rows of a table with a bar in each.
inline constexpr std::size_t kMaxRows = 24;
/// A recorder keeps at most 128; a picture has room for no more.
inline constexpr std::size_t kMaxWindows = 256;
/// A sentence is no longer than this, whatever the names in it.
inline constexpr std::size_t kLongestSentence = 1200;

/// A page around `content`, or one `<div>` with its style sheet. Nothing may be loaded or run, whatever serves the
/// file; styles are in the page itself.
std::string write_page(const std::string& title, bool whole_page,
                       const std::function<void(Markup&)>& content);
void write_header(Markup& out, const Subject& subject);
void write_verdict(Markup& out, const Subject& subject);
/// What to change, today beside predicted.
void write_advice(Markup& out, const Subject& subject);
/// The step against a number of workers, as predicted.
/// known: null: it is simulated.
void write_curve(Markup& out, const Subject& subject, const analysis::StepCurve* known);
/// read: how to read the picture. measured: drawn on and beside the curve.
void write_curve_section(Markup& out, const analysis::StepCurve& curve, double own_s,
                         const std::vector<MeasuredStep>& measured, const std::string& read);
/// What language data is in the batches.
void write_tokens(Markup& out, const Subject& subject);
/// Where the wall clock of the run went.
void write_autopilot(Markup& out, const Subject& subject);
void write_budget(Markup& out, const Subject& subject);
/// What will go wrong, beside the verdict.
void write_risks(Markup& out, const Subject& subject);
/// The average step as a bar: GetNext wait (starved, hand-off), compute.
void write_step(Markup& out, const Subject& subject);
/// Operators and queues from left to right.
void write_graph(Markup& out, const Subject& subject);
/// Share of time at each level, per queue.
void write_histograms(Markup& out, const Subject& subject);
/// What operators and workers did with their time.
void write_states(Markup& out, const Subject& subject);
/// How long an item takes in each operator.
void write_service(Markup& out, const Subject& subject);
/// GetNext wait, operators and queues per window.
void write_time(Markup& out, const Subject& subject);
/// A lane for every worker and the longest waits close up; needs the run's history.
void write_lanes(Markup& out, const Subject& subject, const HtmlOptions& options);
/// What the awaited batch was doing.
void write_ledger(Markup& out, const Subject& subject);
/// Why the device computed nothing.
void write_device(Markup& out, const Subject& subject);
/// This loader in the other ranks.
void write_ranks(Markup& out, const Subject& subject);
void write_evidence(Markup& out, const Subject& subject);
/// What is wrong with the data and the training.
void write_findings(Markup& out, const Subject& subject);
/// What other tools say of the same files.
void write_opinions(Markup& out, const Subject& subject);
/// The machine, start-up, the loader's settings.
void write_surroundings(Markup& out, const Subject& subject);
/// Every figure behind the pictures, folded.
void write_tables(Markup& out, const Subject& subject);

}  // namespace headrace::report
