// The step against the one parameter that matters most in a run: what people ask after "how many workers?".
//
//     const StepCurve curve = step_curve(profile, diagnose(profile));
//     for (const CurvePoint& point : curve.points) printf("%d: %.1f ms\n", point.value, 1e3 * point.then.step_s);
#pragma once

#include <string>
#include <vector>

#include "headrace/analysis/simulate/predictor.h"
#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

struct CurvePoint {
  int value = 0;
  Prediction then;
};

struct StepCurve {
  std::string
      parameter;  ///< a number of workers; empty if there is no such parameter, or nothing can be predicted
  int now = 0;    ///< as it is set in the recorded run
  std::vector<CurvePoint>
      points;  ///< ascending values, at most 12; those that cannot be predicted are left out
};

/// The parameter of the first advice if that is a number of workers, otherwise the workers of the bottleneck,
/// otherwise those of the loader. Values reach from the fewest possible to twice as many as are set or
/// advised, at least 4. Deterministic; a few milliseconds. Thread-safe.
StepCurve step_curve(const profile::Profile& profile, const Diagnosis& diagnosis);

/// Curve by the predictor of the diagnosis, made for a profile without absurd numbers
/// (`plausible`).
StepCurve step_curve(const Predictor& predictor, const Diagnosis& diagnosis);

}  // namespace headrace::analysis
