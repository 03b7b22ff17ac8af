// What the awaited batch was doing while the sink waited.
#pragma once

#include "headrace/analysis/read/thresholds.h"
#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

struct LedgerOpinion {
  int op = -1;             ///< the operator with most of the wait; below 0: abstains (half of it is unknown)
  double known_share = 0;  ///< of the wait
  Evidence evidence;
};

LedgerOpinion judge_ledger(const profile::Profile& profile);

/// Share of the GetNext wait that the ledger charges to one operator; below 0: the ledger is empty.
double charged_share(const profile::Profile& profile, const std::string& op);

}  // namespace headrace::analysis
