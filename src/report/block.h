// A part of a report as data: the text is drawn from it here, the page by a template.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::report {

using Lines = std::vector<std::string>;

/// A name and what is said of it.
struct BlockItem {
  std::string name;
  std::string says;
  std::string word = {};  ///< "do", "misled": what `then` is
  std::string then = {};
  bool in_text = true;  ///< false: only the page has it
};

/// A part of a whole, with a bar for its share.
struct BlockRow {
  std::string name;
  std::string note;  ///< where it is
  double share = 0;
  bool hot = false;  ///< what to look at first
  std::vector<std::string> figures;
};

struct Block {
  std::string heading;  ///< "Where the run's 24.0 s went"
  std::vector<std::string> says = {};
  std::vector<BlockItem> items = {};
  std::size_t name_width = 0;            ///< of the items' names in text; 0: a colon behind each
  std::string of = {};                   ///< what the shares are of: " of the wait"
  std::vector<std::string> titles = {};  ///< of name and bar in text; empty: the text has no bars
  std::vector<BlockRow> rows = {};
  bool has_places = false;  ///< notes stand beside the rows in text, which have no bars
  std::vector<std::string> cures = {};

  bool empty() const { return says.empty() && items.empty() && rows.empty(); }
};

/// Parameters that were set in the run.
Block autopilot_block(const profile::Profile& profile);
/// The wall clock of the run; empty where training is nearly all of it.
Block budget_block(const profile::Profile& profile);
/// Whether something that comes again and again, other than training steps and waits for their batches, is the
/// largest part of the wall clock: then it comes first.
bool budget_leads(const profile::Profile& profile);
/// Risks, beside the verdict.
Block risk_block(const analysis::Diagnosis& diagnosis);
/// Faults of data and training.
Block finding_block(const profile::Profile& profile);
/// Language data.
Block token_block(const profile::Profile& profile);
/// Activities of the awaited batches.
Block ledger_block(const profile::Profile& profile, const analysis::Diagnosis& diagnosis);
/// The steps of a device, where its trace shows nothing else.
Block device_steps_block(const profile::Profile& profile);
/// Why the device computed nothing.
Block device_idle_block(const profile::Profile& profile);
/// The sentences that the verdict rests on.
Block evidence_block(const profile::Profile& profile, const analysis::Diagnosis& diagnosis);
/// Rules of other tools, and why they are misled.
Block opinion_block(const profile::Profile& profile);

/// Lines no wider than `width`, headed; none of an empty block.
Lines lines_of(const Block& block, std::size_t width);
/// Its members by their names; null if it is empty.
nlohmann::json json_of(const Block& block);

/// A heading in capitals, but for a unit behind a number.
std::string headed(const std::string& heading);
/// Adds lines of `says` behind `first`, which the others are indented by; none of an empty sentence.
void add_sentence(Lines& lines, const std::string& first, const std::string& says, std::size_t width);

}  // namespace headrace::report
