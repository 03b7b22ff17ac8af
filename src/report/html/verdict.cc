// What was recorded, the verdict, and why.
#include <algorithm>

#include "../loader_sections.h"
#include "../printable.h"
#include "../wording.h"
#include "figures.h"
#include "sections.h"

namespace headrace::report {
namespace {

using analysis::VerdictKind;

/// The class that colours a verdict.
std::string tone_of(VerdictKind kind) {
  if (kind == VerdictKind::not_input_bound) return "good";
  return is_bound(kind) ? "bad" : "unsure";
}

void write_confidence(Markup& out, double confidence) {
  const std::string figure = number(fraction(confidence), 2);
  const auto place = out.open("div", {{"class", "confidence"}});
  out.leaf("span", "confidence " + figure);
  write_bar(out, "confidence " + figure + " of 1", {{"sure", confidence, ""}, {"rest", 1, ""}});
}

}  // namespace

void write_header(Markup& out, const Subject& subject) {
  const profile::Profile& profile = subject.profile;
  const auto header = out.open("header");
  {
    const auto line = out.open("p", {{"class", "run"}});
    out.leaf("strong", {{"title", whole(profile.loader)}},
             profile.loader.empty() ? "loader" : shortened(profile.loader, 60));
    out.leaf("span", covered(profile));
    if (!profile.finished && profile.sink.steps > 0) out.leaf("span", "still running");
  }
  const std::string settings = settings_line(profile, 400);
  if (!settings.empty()) out.leaf("p", {{"class", "settings"}}, settings);
}

void write_verdict(Markup& out, const Subject& subject) {
  const analysis::Diagnosis& diagnosis = subject.diagnosis;
  const auto section = out.open("section", {{"class", "verdict " + tone_of(diagnosis.kind)}});
  {
    const auto line = out.open("div", {{"class", "line"}});
    out.leaf("p", {{"class", "kind"}}, headline_label(diagnosis.kind));
    if (diagnosis.kind != VerdictKind::undetermined) write_confidence(out, diagnosis.confidence);
  }
  const bool named = begins_with_a_name(subject.profile, diagnosis.summary);
  out.leaf("h1", {{"class", named ? "name" : "sentence"}}, shortened(diagnosis.summary, kLongestSentence));
  const std::string why = explanation(subject.profile, diagnosis);
  if (!why.empty()) out.leaf("p", {{"class", "why"}}, shortened(why, kLongestSentence));
}

}  // namespace headrace::report
