#include "headrace/report/text.h"

#include <algorithm>
#include <cstdio>

#include "block.h"
#include "printable.h"
#include "sections.h"
#include "wording.h"

namespace headrace::report {

namespace {

enum class Tone { kPlain, kBold, kGood, kBad, kUnsure };

std::string toned(const std::string& text, Tone tone, bool color) {
  if (!color || tone == Tone::kPlain) return text;
  const char* code = tone == Tone::kBold   ? "1"
                     : tone == Tone::kGood ? "1;32"
                     : tone == Tone::kBad  ? "1;31"
                                           : "1;33";
  return "\x1b[" + std::string(code) + "m" + text + "\x1b[0m";
}

Tone tone_of(analysis::VerdictKind kind) {
  if (kind == analysis::VerdictKind::not_input_bound) return Tone::kGood;
  return is_bound(kind) ? Tone::kBad : Tone::kUnsure;
}

Lines verdict_section(const profile::Profile& profile, const analysis::Diagnosis& diagnosis,
                      std::size_t width, bool color) {
  const std::string headline = headline_label(diagnosis.kind);
  const Tone tone = tone_of(diagnosis.kind);
  char confidence[32];
  std::snprintf(confidence, sizeof confidence, "confidence %.2f", std::clamp(diagnosis.confidence, 0.0, 1.0));
  const std::size_t left = width - columns(headline) - 3;
  Lines lines;
  const std::string summary =
      printable(diagnosis.summary.size() > 4000 ? diagnosis.summary.substr(0, 4000) : diagnosis.summary);
  const bool beside = columns(summary) + columns(confidence) + 2 <= left;
  const std::string label = toned(headline, tone, color) + "   ";
  if (beside) {
    lines.push_back(label + toned(summary, Tone::kBold, color) +
                    padded(diagnosis.kind == analysis::VerdictKind::undetermined ? "" : confidence,
                           left - columns(summary), true));
  } else if (columns(summary) <= left) {
    lines.push_back(label + toned(summary, Tone::kBold, color));
    if (diagnosis.kind != analysis::VerdictKind::undetermined)
      lines.push_back("  " + std::string(confidence));
  } else {
    lines.push_back(diagnosis.kind == analysis::VerdictKind::undetermined ? toned(headline, tone, color)
                                                                          : label + confidence);
    for (const std::string& line : wrapped(shortened(summary, 4 * width), width - 2)) {
      lines.push_back("  " + toned(line, Tone::kBold, color));
    }
  }
  lines.back().erase(lines.back().find_last_not_of(' ') + 1);
  for (const std::string& line : wrapped(explanation(profile, diagnosis), width - 2))
    lines.push_back("  " + line);
  return lines;
}

}  // namespace

std::string to_text(const profile::Profile& profile, const analysis::Diagnosis& recorded,
                    TextOptions options) {
  const auto width = static_cast<std::size_t>(std::clamp(options.width, 40, 1000));
  const analysis::Diagnosis diagnosis = with_short_names(profile, recorded);
  const bool healthy = diagnosis.kind == analysis::VerdictKind::not_input_bound;
  std::string text = toned(title_line(profile, width), Tone::kPlain, options.color) + "\n";
  const std::string settings = settings_line(profile, width);
  if (!settings.empty()) text += settings + "\n";
  const auto add = [&](const Lines& lines, bool headed) {
    if (lines.empty()) return;
    text += "\n";
    for (std::size_t i = 0; i < lines.size(); ++i) {
      text += toned(lines[i], headed && i == 0 ? Tone::kBold : Tone::kPlain, options.color) + "\n";
    }
  };
  const auto add_block = [&](const Block& block) { add(lines_of(block, width), true); };
  add_block(autopilot_block(profile));
  const bool budget_first = budget_leads(profile);
  if (budget_first) add_block(budget_block(profile));
  add(verdict_section(profile, diagnosis, width, options.color), false);
  add(advice_section(profile, diagnosis, width), true);
  if (!budget_first) add_block(budget_block(profile));
  add_block(risk_block(diagnosis));
  add_block(finding_block(profile));
  add_block(token_block(profile));
  if (!profile.operators.empty() || diagnosis.kind != analysis::VerdictKind::undetermined) {
    add(operator_section(profile, diagnosis, width), true);
  }
  if (!healthy) add(worker_section(profile, width), true);
  const bool stale =
      std::any_of(profile.queues.begin(), profile.queues.end(),
                  [&](const profile::QueueProfile& queue) { return is_stale(queue, profile.sink.step_s); });
  if (!healthy || stale) add(queue_section(profile, width), true);
  if (!healthy) {
    add_block(ledger_block(profile, diagnosis));
    add(window_section(diagnosis, width), true);
  }
  add_block(device_steps_block(profile));
  add_block(device_idle_block(profile));
  add_block(evidence_block(profile, diagnosis));
  add_block(opinion_block(profile));
  return text;
}

}  // namespace headrace::report
