// Blocks of a device's trace in a report: its steps, and why the device computed nothing.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "block.h"
#include "headrace/analysis/step_trace.h"
#include "headrace/analysis/words.h"
#include "printable.h"
#include "wording.h"

namespace headrace::report {

using analysis::duration;
using analysis::percent;
using profile::IdleReason;

namespace {

constexpr std::size_t kMaxCauses = 8;

std::string gap_words(const profile::GapPart& part) {
  switch (part.cause.known().value_or(profile::GapReason::unknown)) {
    case profile::GapReason::processing:
      return "waiting for data that was still being made";
    case profile::GapReason::transmission:
      return "waiting for data on its way to the device";
    case profile::GapReason::getnext:
      return "taking a batch that was there";
    case profile::GapReason::unknown:
      break;
  }
  return "the rest, such as launching the first operator";
}

std::string device_steps_sentence(const profile::Profile& profile) {
  if (!profile.device) return "";
  const analysis::StepTrace steps = analysis::step_trace(profile);
  return steps.source == "device_trace" ? "" : "Parts of a step: " + shortened(steps.unknown, 400) + ".";
}

std::vector<std::string> device_part_sentences(const profile::Profile& profile) {
  std::vector<std::string> sentences;
  if (!profile.device || profile.device->idle_s >= 0 || !profile.device->steps) return sentences;
  const profile::DeviceSteps& steps = *profile.device->steps;
  sentences.push_back("A step: " + step_sentence(analysis::step_trace(profile)) + ".");
  std::string gap;
  for (const profile::GapPart& part : steps.gap) {
    gap += (gap.empty() ? "Of the gap: " : "; ") + duration(part.gap_s) + " " + gap_words(part);
  }
  if (!gap.empty()) sentences.push_back(gap + ".");
  if (!steps.fp_point.empty() || !steps.bp_point.empty()) {
    const auto named = [](const std::string& name) { return name.empty() ? "?" : shortened(name, 80); };
    sentences.push_back("Forward begins with " + named(steps.fp_point) + ", backward ends with " +
                        named(steps.bp_point) + ".");
  }
  std::vector<profile::StepSegment> longest = steps.segments;
  std::stable_sort(longest.begin(), longest.end(),
                   [](const auto& a, const auto& b) { return a.takes_s > b.takes_s; });
  constexpr std::size_t kMax = 3;
  std::string collectives;
  for (std::size_t i = 0; i < std::min(kMax, longest.size()); ++i) {
    collectives += (i == 0 ? "Longest of " + std::to_string(longest.size()) + " collectives: " : ", ") +
                   shortened(longest[i].name, 60) + " " + duration(longest[i].takes_s) + " from " +
                   duration(longest[i].start_s) + " on";
  }
  if (!collectives.empty()) sentences.push_back(collectives + ".");
  for (const std::string& note : profile.device->step_notes) sentences.push_back(shortened(note, 200) + ".");
  return sentences;
}

std::string device_idle_words(const profile::DeviceIdleCause& cause) {
  switch (cause.cause.known().value_or(IdleReason::unknown)) {
    case IdleReason::input:
      return "waited for input";
    case IdleReason::launch:
      return "waited for the host to launch work";
    case IdleReason::communication:
      return "exposed communication";
    case IdleReason::copy:
      return "exposed copies";
    case IdleReason::kernel_gap:
      return "between two kernels";
    case IdleReason::unknown:
      break;
  }
  return "unknown";
}

std::string device_idle_sentence(const profile::DeviceProfile& device, int rank) {
  const double window = device.window_s > 0 ? device.window_s : 1;
  std::string text = fmt::format("The device computed nothing for {} of {}.", percent(device.idle_s / window),
                                 duration(device.window_s));
  for (const profile::DeviceIdleCause& cause : device.causes) {
    if (cause.cause == IdleReason::input && device.idle_s > 0)
      text += fmt::format(" {} of that it waited for input.", percent(cause.idle_s / device.idle_s));
  }
  if (device.clock_error_s)
    text +=
        fmt::format(" The clocks of the run and the trace agree within {}.", duration(*device.clock_error_s));
  if (device.waits_from == "trace") text += " The waits are taken from the trace itself.";
  if (device.rank && *device.rank != rank) text += fmt::format(" The trace is of rank {}.", *device.rank);
  return text;
}

}  // namespace

Block device_steps_block(const profile::Profile& profile) {
  return {.heading = "The device's steps", .says = device_part_sentences(profile)};
}

Block device_idle_block(const profile::Profile& profile) {
  Block block{
      .heading = "What the device waited for", .of = " of the idle time", .titles = {"idle because", "time"}};
  if (!profile.device || !(profile.device->idle_s >= 0)) return block;
  const profile::DeviceProfile& device = *profile.device;
  block.says = {device_idle_sentence(device, profile.rank)};
  if (std::string steps = device_steps_sentence(profile); !steps.empty())
    block.says.push_back(std::move(steps));
  for (const profile::DeviceIdleCause& cause : device.causes) {
    if (block.rows.size() == kMaxCauses || !(cause.idle_s > 0)) break;
    const double share = cause.idle_s / device.idle_s;
    block.rows.push_back({device_idle_words(cause),
                          "",
                          share,
                          cause.cause == profile::IdleReason::input,
                          {duration(cause.idle_s), percent(share)}});
  }
  return block;
}

}  // namespace headrace::report
