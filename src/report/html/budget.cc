// Where the wall clock of the run went: a bar for each part.
#include "../budget.h"

#include <algorithm>
#include <cmath>

#include "../printable.h"
#include "figures.h"
#include "headrace/analysis/words.h"
#include "sections.h"

namespace headrace::report {

using analysis::duration;
using analysis::percent;

namespace {

bool is_of_training(const profile::BudgetPart& part) { return part.part == "steps" || part.part == "waits"; }

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
              {{is_of_training(part) ? "cool" : "hot", fraction(part.share), ""}});
  }
  out.leaf("td", {{"class", "number"}}, duration(part.seconds));
  out.leaf("td", {{"class", "number"}}, percent(part.share));
}

}  // namespace

void write_budget(Markup& out, const Subject& subject) {
  const std::vector<profile::BudgetPart>& budget = subject.profile.budget;
  if (!is_worth_saying(budget)) return;
  const auto section = out.open("section", {{"class", "ledger"}});
  out.leaf("h2", "Where the run's " + duration(wall_s(budget)) + " went");
  {
    const auto table = out.open("table", {{"class", "ledger"}});
    const auto body = out.open("tbody");
    for (std::size_t i = 0; i < std::min(kMaxRows, budget.size()); ++i) {
      if (std::isfinite(budget[i].seconds)) write_part(out, budget[i]);
    }
  }
  for (std::size_t i = 0; i < std::min(kMaxRows, budget.size()); ++i) {
    const std::string cure = cure_words(budget[i]);
    if (!cure.empty()) out.leaf("p", {{"class", "read"}}, shortened(cure, kLongestSentence) + ".");
  }
}

}  // namespace headrace::report
