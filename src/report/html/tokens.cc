// Language data: what is in a batch, and how long its sequences are.
#include "../tokens.h"

#include <algorithm>
#include <string>

#include "figures.h"
#include "headrace/analysis/words.h"
#include "sections.h"

namespace headrace::report {

void write_tokens(Markup& out, const Subject& subject) {
  if (!subject.profile.tokens) return;
  const profile::TokenProfile& tokens = *subject.profile.tokens;
  const auto section = out.open("section", {{"class", "ledger"}});
  out.leaf("h2", "Tokens");
  for (const std::string& each : token_sentences(tokens))
    out.leaf("p", {{"class", "read"}}, sentence(each) + ".");
  for (const std::string& each : token_advice(tokens)) out.leaf("p", sentence(each) + ".");
  const auto table = out.open("table", {{"class", "ledger"}});
  const auto body = out.open("tbody");
  for (std::size_t i = 0; i < std::min(kMaxRows, tokens.lengths.size()); ++i) {
    const profile::LengthBin& bin = tokens.lengths[i];
    const auto row = out.open("tr");
    out.leaf("th", {{"scope", "row"}}, "up to " + std::to_string(bin.up_to) + " tokens");
    {
      const auto cell = out.open("td", {{"class", "picture"}});
      write_bar(out, analysis::percent(fraction(bin.share)) + " of the sequences",
                {{"cool", fraction(bin.share), ""}});
    }
    out.leaf("td", {{"class", "number"}}, analysis::percent(fraction(bin.share)));
  }
}

}  // namespace headrace::report
