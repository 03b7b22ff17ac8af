// How sure a verdict is, from how its evidence agrees. Factors, so that each doubt counts by itself.
#pragma once

#include "headrace/analysis/verdict/causes/cause.h"

namespace headrace::analysis {

double confidence_when_healthy(const Case& facts);
double confidence_when_bound(const Case& facts, const Diagnosis& diagnosis, double certainty);

}  // namespace headrace::analysis
