#include "headrace/analysis/diagnosis/diagnosis_json.h"

#include <nlohmann/json.hpp>

#include "headrace/profile/json_fields.h"

namespace headrace::analysis {
namespace {

template <class T, class Struct>
concept Fields = std::is_same_v<std::remove_const_t<T>, Struct>;

/// A text whose empty form is null in JSON.
template <class F, class Text>
void text_or_null(F& field, const char* name, Text& text) {
  std::optional<std::string> present;
  if (!text.empty()) present = text;
  field(name, present);
  if constexpr (!std::is_const_v<Text>) text = present.value_or("");
}

}  // namespace

template <class F>
void fields_of(F& field, Fields<Evidence> auto& evidence) {
  field("rule", evidence.rule);
  field("says", evidence.says);
  field("figures", evidence.figures);
}

template <class F>
void fields_of(F& field, Fields<Advice> auto& advice) {
  text_or_null(field, "parameter", advice.parameter);
  field("from", advice.from);
  field("to", advice.to);
  field("text", advice.text);
  text_or_null(field, "code", advice.code);
  field("predicted_step_s", advice.predicted_step_s);
  field("low", advice.low);
  field("high", advice.high);
  field("speedup", advice.speedup);
  field("memory_bytes", advice.memory_bytes);
  field("after", advice.after);
}

template <class F>
void fields_of(F& field, Fields<VerdictWindow> auto& window) {
  field("start_s", window.start_s);
  field("end_s", window.end_s);
  field("kind", window.kind);
  field("operator", window.op);
}

template <class F>
void fields_of(F& field, Fields<Diagnosis> auto& diagnosis) {
  field("kind", diagnosis.kind);
  field("operator", diagnosis.op);
  field("cause", diagnosis.cause);
  field("confidence", diagnosis.confidence);
  field("share_of_step", diagnosis.share_of_step);
  text_or_null(field, "reason", diagnosis.reason);
  field("summary", diagnosis.summary);
  field("headroom_step_s", diagnosis.headroom_step_s);
  field("evidence", diagnosis.evidence);
  field("advice", diagnosis.advice);
  field("next_bottleneck", diagnosis.next_bottleneck);
  field("windows", diagnosis.windows);
}

nlohmann::json to_json(const Diagnosis& diagnosis) { return profile::JsonFieldWriter::object_of(diagnosis); }

Diagnosis diagnosis_from_tree(const nlohmann::json& tree) {
  Diagnosis diagnosis;
  profile::JsonFieldReader reader(tree, "diagnosis");
  fields_of(reader, diagnosis);
  return diagnosis;
}

std::string diagnosis_to_json(const Diagnosis& diagnosis, int indent) {
  return profile::dump_json(to_json(diagnosis), indent);
}

Diagnosis diagnosis_from_json(std::string_view text) {
  return diagnosis_from_tree(profile::parse_json(text, "diagnosis JSON"));
}

}  // namespace headrace::analysis
