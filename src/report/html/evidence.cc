// The sentences that the verdict rests on, with their figures.
#include <algorithm>

#include "../loader_sections.h"
#include "../printable.h"
#include "../remote_wording.h"
#include "../wording.h"
#include "figures.h"
#include "sections.h"

namespace headrace::report {
namespace {

constexpr std::size_t kMaxNotes = 32;

void write_sentence(Markup& out, std::string_view rule, const std::string& says) {
  out.leaf("dt", rule);
  out.leaf("dd", shortened(says, kLongestSentence));
}

void write_figures(Markup& out, const std::vector<analysis::Evidence>& evidence) {
  std::vector<std::vector<std::string>> rows;
  for (const analysis::Evidence& one : evidence) {
    for (const auto& [name, value] : one.figures) {
      rows.push_back({std::string(name_of(one.rule)), shortened(name, 60), figure_words(value)});
    }
  }
  if (rows.empty()) return;
  const auto details = out.open("details");
  out.leaf("summary", "The figures of these sentences");
  write_table(out, {"rule", "figure", "#value"}, rows);
}

}  // namespace

void write_evidence(Markup& out, const Subject& subject) {
  const analysis::Diagnosis& diagnosis = subject.diagnosis;
  const std::string handoff = handoff_sentence(subject.profile);
  const std::vector<std::string> transfers = transfer_sentences(subject.profile);
  const std::vector<std::string>& notes = subject.profile.notes;
  const std::vector<std::string> remote = remote_sentences(subject.profile);
  if (diagnosis.evidence.empty() && handoff.empty() && transfers.empty() && remote.empty() && notes.empty())
    return;
  const auto section = out.open("section", {{"class", "evidence"}});
  out.leaf("h2", "Evidence");
  {
    const auto list = out.open("dl");
    for (const analysis::Evidence& one : diagnosis.evidence) write_sentence(out, name_of(one.rule), one.says);
    if (!handoff.empty()) write_sentence(out, "hand-off", handoff);
    for (const std::string& transfer : transfers) write_sentence(out, "transfer", transfer);
    for (const std::string& requests : remote) write_sentence(out, "requests", requests);
    for (std::size_t i = 0; i < std::min(kMaxNotes, notes.size()); ++i) write_sentence(out, "note", notes[i]);
  }
  write_figures(out, diagnosis.evidence);
}

}  // namespace headrace::report
