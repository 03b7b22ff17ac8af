// What the awaited batch was doing while the training loop waited.
#include <algorithm>
#include <cmath>

#include "../printable.h"
#include "../wording.h"
#include "figures.h"
#include "headrace/analysis/words.h"
#include "sections.h"

namespace headrace::report {

using analysis::counted;
using analysis::duration;
using analysis::percent;

namespace {

/// Share of the wait; what is smaller is counted together.
constexpr double kSmallestShare = 0.001;

void write_row(Markup& out, const std::string& words, double share, double step_s, bool here) {
  const auto row = out.open("tr");
  out.leaf("th", {{"scope", "row"}, {"title", shortened(words, 1000)}}, shortened(words, 60));
  {
    const auto cell = out.open("td", {{"class", "picture"}});
    write_bar(out, percent(share) + " of the wait", {{here ? "hot" : "cool", share, ""}});
  }
  out.leaf("td", {{"class", "number"}}, duration(step_s));
  out.leaf("td", {{"class", "number"}}, percent(share));
}

}  // namespace

void write_ledger(Markup& out, const Subject& subject) {
  std::vector<profile::LedgerRow> rows;
  double total = 0;
  for (const profile::LedgerRow& row : subject.profile.stall_ledger) {
    if (!std::isfinite(row.seconds) || !(row.seconds > 0)) continue;
    total += row.seconds;
    rows.push_back(row);
  }
  const auto steps = static_cast<double>(subject.profile.sink.getnext_wait.count);
  if (rows.empty() || steps == 0 || !std::isfinite(total)) return;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });

  const auto section = out.open("section", {{"class", "ledger"}});
  out.leaf("h2", "What the wait was for");
  out.leaf("p", {{"class", "read"}},
           "What the awaited batch was doing while the training loop waited for it, per step: " +
               duration(total / steps) + " in all.");
  const auto table = out.open("table", {{"class", "ledger"}});
  const auto body = out.open("tbody");
  std::size_t shown = 0;
  double rest = total;
  while (shown < std::min(kMaxRows, rows.size()) && rows[shown].seconds >= kSmallestShare * total) {
    const profile::LedgerRow& row = rows[shown++];
    const bool here = subject.diagnosis.op && row.op == *subject.diagnosis.op;
    write_row(out, ledger_words(row), row.seconds / total, row.seconds / steps, here);
    rest -= row.seconds;
  }
  if (shown < rows.size()) {
    const std::string smaller = counted(static_cast<double>(rows.size() - shown), "smaller part");
    write_row(out, smaller, std::max(0.0, rest / total), std::max(0.0, rest / steps), false);
  }
}

}  // namespace headrace::report
