#include "headrace/report/text.h"

#include <algorithm>
#include <cstdio>

#include "headrace/analysis/words.h"
#include "loader_sections.h"
#include "printable.h"
#include "sections.h"

namespace headrace::report {

using analysis::duration;
using analysis::percent;

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

struct Headline {
  std::string label;
  Tone tone;
};

Headline headline_of(const std::string& kind) {
  if (kind == "not_input_bound") return {"NOT INPUT-BOUND", Tone::kGood};
  if (kind == "input_bound") return {"INPUT-BOUND", Tone::kBad};
  if (kind == "intermittent") return {"INPUT-BOUND AT TIMES", Tone::kBad};
  return {"UNDETERMINED", Tone::kUnsure};
}

const analysis::Evidence* find_rule(const analysis::Diagnosis& diagnosis, const std::string& rule) {
  for (const analysis::Evidence& evidence : diagnosis.evidence) {
    if (evidence.rule == rule) return &evidence;
  }
  return nullptr;
}

/// Two or three sentences below the headline: what it costs, and why this operator.
std::string explanation(const profile::Profile& profile, const analysis::Diagnosis& diagnosis) {
  std::string text;
  const auto begins_with_a_name = [&profile](const std::string& sentence) {
    const auto begins = [&](const auto& named) {
      return !named.name.empty() && sentence.rfind(named.name, 0) == 0;
    };
    return std::any_of(profile.operators.begin(), profile.operators.end(), begins) ||
           std::any_of(profile.queues.begin(), profile.queues.end(), begins);
  };
  const auto say = [&](std::string sentence) {
    if (sentence.empty()) return;
    // An operator's name stays as the user wrote it.
    const bool lower = sentence[0] >= 'a' && sentence[0] <= 'z';
    if (lower && !begins_with_a_name(sentence)) sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
    text += (text.empty() ? "" : " ") + sentence + ".";
  };
  if (diagnosis.kind == "not_input_bound") {
    if (diagnosis.headroom_step_s)
      say("The input could feed steps down to " + duration(*diagnosis.headroom_step_s));
  } else if (diagnosis.kind != "undetermined") {
    say("The training loop waited " + duration(profile.sink.wait_share * profile.sink.step_s) + " of " +
        duration(profile.sink.step_s) + " in every step (" + percent(profile.sink.wait_share) + ")");
  }
  if (const analysis::Evidence* cause = find_rule(diagnosis, "cause")) say(cause->says);
  say(diagnosis.reason);
  return text;
}

Lines verdict_section(const profile::Profile& profile, const analysis::Diagnosis& diagnosis,
                      std::size_t width, bool color) {
  const Headline headline = headline_of(diagnosis.kind);
  char confidence[32];
  std::snprintf(confidence, sizeof confidence, "confidence %.2f", std::clamp(diagnosis.confidence, 0.0, 1.0));
  const std::size_t left = width - columns(headline.label) - 3;
  Lines lines;
  const std::string summary =
      printable(diagnosis.summary.size() > 4000 ? diagnosis.summary.substr(0, 4000) : diagnosis.summary);
  const bool beside = columns(summary) + columns(confidence) + 2 <= left;
  const std::string label = toned(headline.label, headline.tone, color) + "   ";
  if (beside) {
    lines.push_back(
        label + toned(summary, Tone::kBold, color) +
        padded(diagnosis.kind == "undetermined" ? "" : confidence, left - columns(summary), true));
  } else if (columns(summary) <= left) {
    lines.push_back(label + toned(summary, Tone::kBold, color));
    if (diagnosis.kind != "undetermined") lines.push_back("  " + std::string(confidence));
  } else {
    lines.push_back(diagnosis.kind == "undetermined" ? toned(headline.label, headline.tone, color)
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

/// A name of 10,000 characters would fill the sentences that hold it.
analysis::Diagnosis with_short_names(const profile::Profile& profile, analysis::Diagnosis diagnosis) {
  constexpr std::size_t kLongestName = 60;
  const auto shorten_in = [](std::string& text, const std::string& name) {
    const std::string brief = shortened(name, kLongestName);
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + brief.size())) {
      text.replace(at, name.size(), brief);
    }
  };
  const auto everywhere = [&](const std::string& name) {
    if (name.size() <= kLongestName) return;
    shorten_in(diagnosis.summary, name);
    for (analysis::Evidence& evidence : diagnosis.evidence) shorten_in(evidence.says, name);
    for (analysis::Advice& advice : diagnosis.advice) shorten_in(advice.text, name);
  };
  for (const profile::OperatorProfile& op : profile.operators) everywhere(op.name);
  for (const profile::QueueProfile& queue : profile.queues) everywhere(queue.name);
  return diagnosis;
}

}  // namespace

std::string to_text(const profile::Profile& profile, const analysis::Diagnosis& recorded,
                    TextOptions options) {
  const auto width = static_cast<std::size_t>(std::clamp(options.width, 40, 1000));
  const analysis::Diagnosis diagnosis = with_short_names(profile, recorded);
  const bool healthy = diagnosis.kind == "not_input_bound";
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
  add(verdict_section(profile, diagnosis, width, options.color), false);
  add(advice_section(profile, diagnosis, width), true);
  if (!profile.operators.empty() || diagnosis.kind != "undetermined") {
    add(operator_section(profile, diagnosis, width), true);
  }
  if (!healthy) {
    add(worker_section(profile, width), true);
    add(queue_section(profile, width), true);
    add(ledger_section(profile, width), true);
    add(window_section(diagnosis, width), true);
  }
  add(evidence_section(profile, diagnosis, width), true);
  return text;
}

}  // namespace headrace::report
