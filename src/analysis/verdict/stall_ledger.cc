#include "headrace/analysis/verdict/stall_ledger.h"
#include "headrace/analysis/words.h"

#include <map>

#include "../read/numbers.h"

namespace headrace::analysis {

namespace {

/// What is on its way is charged to the operator that passes it on, where the row names nobody.
const std::string& charged_to(const profile::Profile& profile, const profile::LedgerRow& row) {
  if (!row.op.empty() || row.what != profile::WaitReason::handoff) return row.op;
  for (const profile::OperatorProfile& op : profile.operators) {
    if (op.kind == profile::OperatorKind::handoff) return op.name;
  }
  return row.op;
}

}  // namespace

double charged_share(const profile::Profile& profile, const std::string& op) {
  double total = 0;
  double charged = 0;
  for (const profile::LedgerRow& row : profile.stall_ledger) {
    total += row.seconds;
    if (charged_to(profile, row) == op) charged += row.seconds;
  }
  return total > 0 ? charged / total : -1;
}

LedgerOpinion judge_ledger(const profile::Profile& profile) {
  std::map<std::string, double> per_operator;
  double total = 0;
  double known = 0;
  for (const profile::LedgerRow& row : profile.stall_ledger) {
    total += row.seconds;
    if (row.what == profile::WaitReason::unknown) continue;
    known += row.seconds;
    const std::string& op = charged_to(profile, row);
    if (!op.empty()) per_operator[op] += row.seconds;
  }
  LedgerOpinion opinion;
  opinion.known_share = ratio(known, total);
  if (total <= 0) return opinion;
  const std::string* name = nullptr;
  double most = 0;
  for (const auto& [op, seconds] : per_operator) {
    if (seconds > most) {
      most = seconds;
      name = &op;
    }
  }
  opinion.evidence.rule = Rule::ledger;
  opinion.evidence.figures = {{"wait_s", total}, {"known_share", opinion.known_share}};
  if (name == nullptr || most < kMostOf * total) {
    opinion.evidence.says = "the ledger charges the wait to no single operator";
    return opinion;
  }
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    if (profile.operators[i].name == *name) opinion.op = static_cast<int>(i);
  }
  opinion.evidence.says = percent(most / total) + " of the wait was for a batch in " + *name;
  opinion.evidence.figures["charged_share"] = most / total;
  return opinion;
}

}  // namespace headrace::analysis
