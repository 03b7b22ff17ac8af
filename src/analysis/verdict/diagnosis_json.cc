#include "headrace/analysis/verdict/diagnosis_json.h"

#include <nlohmann/json.hpp>

#include "headrace/profile/json_fields.h"

namespace headrace::analysis {

/// An empty text is null in JSON.
template <class F>
void text_or_null(F& field, const char* name, const std::string& text) {
  field(name, text.empty() ? std::nullopt : std::optional(text));
}

template <class F>
void fields_of(F& field, const Evidence& evidence) {
  field("rule", evidence.rule);
  field("says", evidence.says);
  field("figures", evidence.figures);
}

template <class F>
void fields_of(F& field, const Advice& advice) {
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
void fields_of(F& field, const Risk& risk) {
  field("risk", risk.kind);
  field("says", risk.says);
  field("figures", risk.figures);
  field("cure", risk.cure);
}

template <class F>
void fields_of(F& field, const QueueRule& rule) {
  field("operator", rule.op);
  field("left", rule.left);
  field("right", rule.right);
  field("agrees", rule.agrees);
  field("says", rule.says);
}

template <class F>
void fields_of(F& field, const VerdictWindow& window) {
  field("start_s", window.start_s);
  field("end_s", window.end_s);
  field("kind", window.kind);
  field("operator", window.op);
}

template <class F>
void fields_of(F& field, const Diagnosis& diagnosis) {
  field("kind", diagnosis.kind);
  field("operator", diagnosis.op);
  field("cause", diagnosis.cause);
  field("confidence", diagnosis.confidence);
  field("share_of_step", diagnosis.share_of_step);
  text_or_null(field, "reason", diagnosis.reason);
  field("summary", diagnosis.summary);
  field("headroom_step_s", diagnosis.headroom_step_s);
  field("evidence", diagnosis.evidence);
  field("queue_rule", diagnosis.queue_rule);
  field("advice", diagnosis.advice);
  field("next_bottleneck", diagnosis.next_bottleneck);
  field("risks", diagnosis.risks);
  field("windows", diagnosis.windows);
}

nlohmann::json to_json(const Diagnosis& diagnosis) { return profile::JsonFieldWriter::object_of(diagnosis); }

std::string diagnosis_to_json(const Diagnosis& diagnosis, int indent) {
  return profile::dump_json(to_json(diagnosis), indent);
}

}  // namespace headrace::analysis
