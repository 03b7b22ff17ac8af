// The average step: what of it is waiting for a batch, and how.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "../wording.h"
#include "figures.h"
#include "headrace/analysis/step_trace.h"
#include "headrace/analysis/words.h"
#include "sections.h"

namespace headrace::report {

using analysis::duration;
using analysis::percent;

namespace {

/// What the bottleneck costs, as a bracket above the bar.
void write_cost(Markup& out, double share) {
  if (!(fraction(share) > 0)) return;
  const auto cost = out.open("div", {{"class", "cost"}});
  out.leaf("span", "the bottleneck costs " + percent(fraction(share)) + " of the step");
  out.leaf("div", {{"class", "bracket"}, {"style", "width:" + css_percent(share)}}, "");
}

/// The step as reported by hooks on the model; nothing if there are no marks.
void write_parts(Markup& out, const analysis::StepTrace& steps) {
  const std::string parts = step_sentence(steps);
  if (!parts.empty()) out.leaf("p", {{"class", "read"}}, "A step: " + parts + ".");
}

void write_waits(Markup& out, const profile::SinkProfile& sink) {
  const profile::Latency& wait = sink.getnext_wait;
  std::string says =
      fmt::format("GetNext wait: half of the calls under {}, 90 % under {}, 99 % under {}, longest {}.",
                  duration(wait.p50_s), duration(wait.p90_s), duration(wait.p99_s), duration(wait.max_s));
  if (sink.ready_share > 0) {
    says += " " + percent(sink.ready_share) + " of the calls found their batch ready";
    if (sink.handoff_floor_s > 0)
      says += " and waited " + duration(sink.handoff_floor_s) + " for its hand-over";
    says += ".";
  }
  if (sink.quiet_compute_s && sink.quiet_steps > 0) {
    says += " While no worker was busy, the step itself took " + duration(*sink.quiet_compute_s) + ".";
  }
  if (sink.device_span_s && *sink.device_span_s > 0) {
    says += fmt::format(" The device's own clock timed {} of the steps: {} each, on average.",
                        sink.device_steps, duration(*sink.device_span_s));
  }
  if (sink.ceiling_step_s && *sink.ceiling_step_s > 0 && sink.step_s > 0) {
    says += fmt::format(
        " Measured over batches in memory, a step takes {}: a faster input gains {:.2f}x at most.",
        duration(*sink.ceiling_step_s), std::max(1.0, sink.step_s / *sink.ceiling_step_s));
  }
  out.leaf("p", {{"class", "read"}}, says);
}

}  // namespace

void write_step(Markup& out, const Subject& subject) {
  const profile::SinkProfile& sink = subject.profile.sink;
  if (!(sink.step_s > 0) || !std::isfinite(sink.step_s)) return;
  const double wait = fraction(sink.wait_share);
  const double starved = std::min(wait, fraction(sink.starved_share));
  const double floor = wait - starved;
  const double compute = 1 - wait;
  const auto figure = [&](double share) { return duration(share * sink.step_s) + ", " + percent(share); };

  const auto section = out.open("section", {{"class", "step"}});
  out.leaf("h2", "An average step: " + duration(sink.step_s));
  write_cost(out, subject.diagnosis.share_of_step);
  write_bar(out,
            fmt::format("an average step of {}: starved {}, hand-off {}, compute {}", duration(sink.step_s),
                        figure(starved), figure(floor), figure(compute)),
            {{"starved", starved, "starved " + figure(starved)},
             {"floor", floor, "hand-off " + figure(floor)},
             {"compute", compute, "compute " + figure(compute)}});
  std::string computes = figure(compute);
  if (sink.compute_cpu_s) computes += " (CPU " + duration(*sink.compute_cpu_s) + ")";
  write_legend(out, {{"starved", "waiting, no batch finished", figure(starved)},
                     {"floor", "waiting, hand-off of a finished batch", figure(floor)},
                     {"compute", "training step", computes}});
  write_parts(out, analysis::step_trace(subject.profile));
  if (sink.getnext_wait.count > 0) write_waits(out, sink);
}

}  // namespace headrace::report
