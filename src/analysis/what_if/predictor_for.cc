#include "headrace/analysis/diagnosis/loader.h"
#include "headrace/analysis/diagnosis/predictor.h"
#include "headrace/analysis/what_if/loader_simulator.h"
#include "headrace/analysis/what_if/pipeline_simulator.h"

namespace headrace::analysis {

std::unique_ptr<Predictor> predictor_for(const profile::Profile& profile) {
  if (loader_of(profile)) return std::make_unique<LoaderSimulator>(profile);
  return std::make_unique<PipelineSimulator>(profile);
}

}  // namespace headrace::analysis
