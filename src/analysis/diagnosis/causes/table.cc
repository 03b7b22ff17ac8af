#include "headrace/analysis/diagnosis/causes/cause.h"

namespace headrace::analysis {

extern const Cause kStartup;
extern const Cause kTransientStall;
extern const Cause kAlternating;
extern const Cause kSlowWorker;
extern const Cause kSlowRank;
extern const Cause kSlowSamples;
extern const Cause kGilContention;
extern const Cause kCpuSaturated;
extern const Cause kHandoff;
extern const Cause kTransfer;
extern const Cause kVariance;
extern const Cause kNoOverlap;
extern const Cause kSerialOperator;
extern const Cause kTooFewWorkers;

std::span<const Cause* const> causes_in_order() {
  static constexpr const Cause* kOrder[] = {
      &kStartup,     &kTransientStall, &kAlternating,    &kSlowWorker,    &kSlowRank,
      &kSlowSamples, &kGilContention,  &kCpuSaturated,   &kHandoff,       &kTransfer,
      &kVariance,    &kNoOverlap,      &kSerialOperator, &kTooFewWorkers,
  };
  return kOrder;
}

}  // namespace headrace::analysis
