// The words that the text and the page share, so that both say the same thing in the same way.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "headrace/analysis/step_trace.h"
#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::report {

/// "INPUT-BOUND", for a diagnosis' kind.
std::string headline_label(analysis::VerdictKind kind);

/// Whether it begins with the name of an operator or queue, which stays as the user wrote it.
bool begins_with_a_name(const profile::Profile& profile, const std::string& sentence);

/// Two or three sentences below the headline: what it costs, and why this operator.
std::string explanation(const profile::Profile& profile, const analysis::Diagnosis& diagnosis);

/// "workers=4, ordered=False": how the framework's loader is set, defaults left out; "" if that is unknown.
std::string settings_line(const profile::Profile& profile, std::size_t width);

/// "2 epochs · 782 steps · 49.3 s · rank 0".
std::string covered(const profile::Profile& profile);

/// "waits for decode", "does not wait": what another verdict of a stretch of time means.
std::string window_words(const analysis::VerdictWindow& window);

/// Wait in a step that cost nothing, because the device still worked; 0 if the verdict has none.
double device_lag_s(const analysis::Diagnosis& diagnosis);

/// "gap 26.4 ms, forward and backward 8.1 ms, tail 2.3 ms (hooks, the host's time)", of the average step;
/// empty where only the loader could tell, which knows no more than the table says.
std::string step_sentence(const analysis::StepTrace& steps);

/// The training loop takes from it, and half of the items lie in it for a step or longer.
bool is_stale(const profile::QueueProfile& queue, double step_s);

/// "an item lies in q for 320 ms (median; p90 380 ms) before training takes it: 8.1 steps"; empty where ages
/// are unknown, and for queues that the training loop does not take from.
std::string item_age_sentence(const profile::QueueProfile& queue, double step_s);

/// The limit once advice `index` is followed, in words; "" if that is unknown.
std::string limit_after(const analysis::Diagnosis& diagnosis, std::size_t index);

/// The lines of an advice's code, without their ends.
std::vector<std::string> code_lines(const std::string& code);

/// A limit as a sentence has it: "sink" is the training step, "cpu" the CPU.
std::string limit_words(const std::string& name);

/// Both bounds; the unit stands once where they share it: {"36.5", "40.4 ms"}.
std::pair<std::string, std::string> interval(double low_s, double high_s);

/// "-" where it is not finite.
std::string number(double value, int decimals);

/// `diagnosis` with names of more than 60 columns cut in its sentences: one of 10,000 characters would
/// fill them.
analysis::Diagnosis with_short_names(const profile::Profile& profile, analysis::Diagnosis diagnosis);

}  // namespace headrace::report
