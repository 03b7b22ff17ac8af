// Where the wall clock of the run went: a bar for each part.
#include "../budget.h"

#include "../printable.h"
#include "figures.h"
#include "headrace/analysis/words.h"
#include "sections.h"

namespace headrace::report {

using analysis::duration;
using analysis::percent;

namespace {

void write_part(Markup& out, const profile::BudgetPart& part) {
  const auto row = out.open("tr");
  {
    const auto name = out.open("th", {{"scope", "row"}});
    out.leaf("span", shortened(part_words(part), 60));
    const std::string place = place_words(part);
    if (!place.empty()) out.leaf("div", {{"class", "read"}}, shortened(place, 200));
  }
  {
    const auto cell = out.open("td", {{"class", "picture"}});
    write_bar(out, percent(fraction(part.share)) + " of the run",
              {{is_training(part) ? "cool" : "hot", fraction(part.share), ""}});
  }
  out.leaf("td", {{"class", "number"}}, duration(part.seconds));
  out.leaf("td", {{"class", "number"}}, percent(part.share));
}

}  // namespace

void write_budget(Markup& out, const Subject& subject) {
  const std::vector<profile::BudgetPart>& budget = subject.profile.budget;
  if (!is_worth_saying(budget)) return;
  const auto section = out.open("section", {{"class", "ledger"}});
  const std::vector<const profile::BudgetPart*> rows = rows_of(budget);
  out.leaf("h2", "Where the run's " + duration(wall_s(budget)) + " went");
  {
    const auto table = out.open("table", {{"class", "ledger"}});
    const auto body = out.open("tbody");
    for (const profile::BudgetPart* part : rows) write_part(out, *part);
  }
  for (const profile::BudgetPart* part : rows) {
    const std::string cure = cure_words(*part);
    if (!cure.empty()) out.leaf("p", {{"class", "read"}}, shortened(cure, kLongestSentence) + ".");
  }
}

}  // namespace headrace::report
