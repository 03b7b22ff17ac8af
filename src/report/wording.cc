#include "wording.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "headrace/analysis/words.h"
#include "printable.h"

namespace headrace::report {

using analysis::duration;
using analysis::memory_size;
using analysis::percent;
using analysis::VerdictKind;
using profile::IdleReason;
using profile::WaitReason;

namespace {

const analysis::Evidence* find_rule(const analysis::Diagnosis& diagnosis, analysis::Rule rule) {
  for (const analysis::Evidence& evidence : diagnosis.evidence) {
    if (evidence.rule == rule) return &evidence;
  }
  return nullptr;
}

/// 0 if the gate has no such figure.
double gate_figure(const analysis::Diagnosis& diagnosis, const std::string& name) {
  const analysis::Evidence* gate = find_rule(diagnosis, analysis::Rule::gate);
  if (gate == nullptr) return 0;
  const auto found = gate->figures.find(name);
  return found == gate->figures.end() ? 0 : found->second;
}

/// ", so a faster input gains at most 1.06x": small where little was lost. Nothing where a change is predicted to
/// gain more, because it also takes work out of the training loop.
std::string most_gain(const analysis::Diagnosis& diagnosis) {
  constexpr double kWorthAWord = 1.05;
  constexpr double kNearlyAll = 10;
  const double most = gate_figure(diagnosis, "most_speedup");
  if (!(most >= kWorthAWord) || most >= kNearlyAll) return "";
  for (const analysis::Advice& advice : diagnosis.advice) {
    if (advice.speedup.value_or(0) > most) return "";
  }
  return fmt::format(", so a faster input gains at most {:.2f}x", most);
}

/// The loop's wait in a step, and for how much of it its device still worked.
std::string waited(const profile::SinkProfile& sink, const analysis::Diagnosis& diagnosis) {
  constexpr double kWorthAWord = 0.05;
  const double waited_s = sink.wait_share * sink.step_s;
  const double lag_s = device_lag_s(diagnosis);
  std::string text = fmt::format("the training loop waited {} of {} in every step ({})", duration(waited_s),
                                 duration(sink.step_s), percent(sink.wait_share));
  if (lag_s > 0 && lag_s >= kWorthAWord * waited_s)
    text += fmt::format(", and for {} of that the device still worked", duration(lag_s));
  return text;
}

/// As its user would write it; "" if the framework's own default, or no value, needs no word.
std::string worth_saying(const profile::LoaderParameter& parameter) {
  return parameter.value == parameter.usual ? "" : profile::as_written(parameter.value);
}

}  // namespace

double device_lag_s(const analysis::Diagnosis& diagnosis) { return gate_figure(diagnosis, "device_lag_s"); }

std::string headline_label(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::not_input_bound:
      return "NOT INPUT-BOUND";
    case VerdictKind::input_bound:
      return "INPUT-BOUND";
    case VerdictKind::intermittent:
      return "INPUT-BOUND AT TIMES";
    case VerdictKind::undetermined:
      break;
  }
  return "UNDETERMINED";
}

bool begins_with_a_name(const profile::Profile& profile, const std::string& sentence) {
  const auto begins = [&](const auto& named) {
    if (named.name.empty() || !sentence.starts_with(named.name)) return false;
    const auto next = static_cast<unsigned char>(sentence.c_str()[named.name.size()]);
    return std::isalnum(next) == 0;  // "the", where an operator is called t, is no name
  };
  return std::any_of(profile.operators.begin(), profile.operators.end(), begins) ||
         std::any_of(profile.queues.begin(), profile.queues.end(), begins);
}

std::string explanation(const profile::Profile& profile, const analysis::Diagnosis& diagnosis) {
  std::string text;
  const auto say = [&](std::string sentence) {
    if (sentence.empty()) return;
    const bool lower = sentence[0] >= 'a' && sentence[0] <= 'z';
    if (lower && !begins_with_a_name(profile, sentence))
      sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
    text += (text.empty() ? "" : " ") + sentence + ".";
  };
  if (diagnosis.kind == VerdictKind::not_input_bound) {
    if (diagnosis.headroom_step_s)
      say("The input could feed steps down to " + duration(*diagnosis.headroom_step_s));
  } else if (is_bound(diagnosis.kind)) {
    say(waited(profile.sink, diagnosis) + most_gain(diagnosis));
  }
  if (const analysis::Evidence* cause = find_rule(diagnosis, analysis::Rule::cause)) say(cause->says);
  say(diagnosis.reason);
  return text;
}

std::string settings_line(const profile::Profile& profile, std::size_t width) {
  std::string text;
  if (!profile.model) return text;
  for (const profile::LoaderParameter& parameter : profile.model->parameters) {
    const std::string value = worth_saying(parameter);
    if (value.empty()) continue;
    text += (text.empty() ? "" : ", ") + shortened(parameter.name, 40) + "=" + shortened(value, 40);
  }
  return shortened(text, width);
}

std::string covered(const profile::Profile& profile) {
  const auto counted = [](std::uint64_t count, const char* noun) {
    return fmt::format("{} {}{} · ", count, noun, count == 1 ? "" : "s");
  };
  return (profile.epochs > 0 ? counted(profile.epochs, "epoch") : "") + counted(profile.sink.steps, "step") +
         fmt::format("{} · rank {}", duration(profile.elapsed_s), profile.rank);
}

std::string window_words(const analysis::VerdictWindow& window) {
  if (window.op) return "waits for " + *window.op;
  return window.kind == VerdictKind::not_input_bound ? "does not wait" : "waits";
}

std::string step_sentence(const analysis::StepTrace& steps) {
  if (steps.source == "loader") return "";
  const analysis::StepTime& average = steps.average;
  const auto part = [](const std::optional<double>& seconds) { return duration(seconds.value_or(-1)); };
  std::string text = "gap " + part(average.iteration_gap_s) + ", ";
  text += average.tail_s
              ? "forward and backward " + part(average.forward_backward_s) + ", tail " + part(average.tail_s)
              : "forward, backward and tail " + part(average.forward_backward_s);
  const bool of_device = steps.source == "device_trace";
  text += of_device ? " (device trace" : " (hooks, the host's time";
  if (steps.steps < steps.of_steps) {
    text += fmt::format(", {} of {} steps", steps.steps, steps.of_steps);
  } else if (of_device) {
    text += fmt::format(", {} step{}", steps.steps, steps.steps == 1 ? "" : "s");
  }
  text += ")";
  if (const double communication = average.communication_s.value_or(0); communication > 0) {
    text += ", communication " + duration(communication);
    if (average.communication_overlap_s)
      text += fmt::format(", {} of it under computation",
                          percent(*average.communication_overlap_s / communication));
  }
  return text;
}

bool is_stale(const profile::QueueProfile& queue, double step_s) {
  return queue.to_sink && queue.item_age && step_s > 0 && queue.item_age->p50_s >= step_s;
}

std::string item_age_sentence(const profile::QueueProfile& queue, double step_s) {
  if (!queue.to_sink || !queue.item_age || queue.item_age->count == 0) return "";
  const profile::Latency& age = *queue.item_age;
  std::string text = fmt::format("an item lies in {} for {} (median; p90 {}) before training takes it",
                                 shortened(analysis::in_a_sentence(queue), kLongestName), duration(age.p50_s),
                                 duration(age.p90_s));
  if (is_stale(queue, step_s)) text += fmt::format(": {:.1f} steps", age.p50_s / step_s);
  return text;
}

std::string limit_after(const analysis::Diagnosis& diagnosis, std::size_t index) {
  if (index >= diagnosis.advice.size()) return "";
  std::string limit = diagnosis.advice[index].then_limit;
  if (limit.empty() && index == 0) limit = diagnosis.next_bottleneck.value_or("");
  return limit.empty() ? "" : limit_words(limit);
}

std::vector<std::string> code_lines(const std::string& code) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < code.size();) {
    const std::size_t end = std::min(code.find('\n', at), code.size());
    lines.push_back(code.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string limit_words(const std::string& name) {
  if (name == "sink") return "the training step";
  return name == "cpu" ? "the CPU" : name;
}

std::pair<std::string, std::string> interval(double low_s, double high_s) {
  std::string low = duration(low_s);
  std::string high = duration(high_s);
  const auto unit = [](const std::string& text) {
    return text.substr(std::min(text.size(), text.find(' ')));
  };
  if (unit(low) == unit(high)) low.erase(low.size() - unit(low).size());
  return {low, high};
}

std::string number(double value, int decimals) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, decimals) : "-";
}

analysis::Diagnosis with_short_names(const profile::Profile& profile, analysis::Diagnosis diagnosis) {
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

}  // namespace headrace::report
