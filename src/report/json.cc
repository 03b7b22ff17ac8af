#include "headrace/report/json.h"

#include <nlohmann/json.hpp>

#include "headrace/analysis/step_trace.h"
#include "headrace/analysis/verdict/diagnosis_json.h"
#include "headrace/profile/json_fields.h"

namespace headrace::analysis {

template <class F>
void fields_of(F& field, const StepTime& step) {
  field("iteration_gap_s", step.iteration_gap_s);
  field("forward_backward_s", step.forward_backward_s);
  field("tail_s", step.tail_s);
  field("total_s", step.total_s);
  // Only of a device trace.
  if (step.step) field("step", step.step);
  if (step.communication_s) field("communication_s", step.communication_s);
  if (step.communication_overlap_s) field("communication_overlap_s", step.communication_overlap_s);
}

template <class F>
void fields_of(F& field, const StepTrace& trace) {
  field("source", trace.source);
  field("unknown", trace.unknown);
  field("steps", trace.steps);
  field("of_steps", trace.of_steps);
  field("average", trace.average);
  field("per_step", trace.per_step);
}

}  // namespace headrace::analysis

namespace headrace::report {

std::string to_json(const profile::Profile& profile, const analysis::Diagnosis& diagnosis, int indent) {
  nlohmann::json document;
  document["version"] = kVersion;
  document["loader"] = profile.loader;
  document["rank"] = profile.rank;
  document["profile"] = profile::to_json(profile);
  document["findings"] = document["profile"]["findings"];
  document["budget"] = document["profile"]["budget"];
  document["diagnosis"] = analysis::to_json(diagnosis);
  document["steps"] = profile::JsonFieldWriter::object_of(analysis::step_trace(profile));
  return profile::dump_json(document, indent);
}

}  // namespace headrace::report
