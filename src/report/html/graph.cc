// Operators and queues from left to right. HTML lays the boxes out, so that they wrap on a narrow screen and
// their names stay text; the queues between them are drawn.
#include <algorithm>
#include <cmath>

#include "../wording.h"
#include "figures.h"
#include "headrace/analysis/words.h"
#include "sections.h"
#include "stages.h"

namespace headrace::report {

using analysis::counted;
using analysis::duration;
using analysis::percent;

namespace {

/// More lines make a box unreadable; the bottleneck and the largest are kept.
constexpr std::size_t kMaxLines = 10;

double level_of(const profile::QueueProfile& queue) {
  return queue.capacity > 0 ? fraction(queue.mean / static_cast<double>(queue.capacity)) : 0;
}

void write_queue(Markup& out, const StageQueue& one) {
  const profile::QueueProfile& queue = one.queue;
  const std::string says = whole(queue.name) + ": " + level_words(queue) + " on average, empty " +
                           percent(queue.empty_share) + ", full " + percent(queue.full_share);
  const auto item = out.open("div", {{"class", "queue"}, {"title", says}});
  out.leaf("span", {{"class", "name"}}, brief(queue.name));
  {
    constexpr double kWidth = 76;
    const auto svg = out.open("svg", {{"viewBox", "0 0 100 16"}, {"role", "img"}, {"aria-label", says}});
    out.empty("rect", {{"class", queue.capacity > 0 ? "tank" : "tank unbounded"},
                       {"x", "1"},
                       {"y", "1"},
                       {"width", length(kWidth)},
                       {"height", "14"},
                       {"rx", "3"}});
    const double level = level_of(queue);
    if (level > 0) {
      out.empty("rect", {{"class", level_class(level)},
                         {"x", "1"},
                         {"y", "1"},
                         {"width", length(std::max(2.0, kWidth * level))},
                         {"height", "14"},
                         {"rx", "3"}});
    }
    out.empty("path", {{"class", "arrow"}, {"d", "M80 8h15m-6-5 6 5-6 5"}});
  }
  out.leaf("span", {{"class", "level"}}, level_words(queue));
  if (!one.clear && !(queue.from.empty() && queue.to.empty())) {
    out.leaf("span", {{"class", "ends"}},
             brief(queue.from.empty() ? "?" : queue.from) + " → " + brief(limit_words(queue.to)));
  }
}

void write_line(Markup& out, const Subject& subject, const profile::OperatorProfile& op) {
  const bool here = subject.is_bottleneck(op);
  const std::string took = duration(op.demand_s * op.workers) + " a batch";
  const auto line =
      out.open("li", {{"class", here ? "here" : "operator"},
                      {"title", whole(op.name) + " (" + whole(op.kind.text()) + "): " + took + ", busy " +
                                    percent(op.states.busy) + (here ? "; the bottleneck" : "")}});
  out.leaf("span", {{"class", "name"}}, brief(op.name));
  write_bar(out, "busy " + percent(op.states.busy), {{here ? "hot" : "busy", op.states.busy, ""}});
  out.leaf("span", {{"class", "took"}}, duration(op.demand_s * op.workers));
  out.leaf("span", {{"class", "load"}}, percent(op.states.busy) + " busy");
}

void write_operators(Markup& out, const Subject& subject, const Box& box) {
  const profile::OperatorProfile& first = *box.operators.front();
  int workers = 0;
  for (const profile::OperatorProfile* op : box.operators) workers = std::max(workers, op->workers);
  const std::string who = box.in_sink ? "in the loop" : counted(workers, "worker");
  out.leaf("p", {{"class", "who"}},
           box.operators.size() == 1 && !first.kind.empty() ? brief(first.kind.text()) + " · " + who : who);
  // Of many the bottleneck and those that take longest, in the order of the data flow.
  std::vector<const profile::OperatorProfile*> shown = box.operators;
  if (shown.size() > kMaxLines) {
    const auto weight = [&](const profile::OperatorProfile* op) {
      return subject.is_bottleneck(*op) ? 1e300 : std::isfinite(op->demand_s) ? op->demand_s : 0;
    };
    std::stable_sort(shown.begin(), shown.end(),
                     [&](const auto* a, const auto* b) { return weight(a) > weight(b); });
    shown.resize(kMaxLines - 1);
    std::sort(shown.begin(), shown.end());  // they lie in one vector, in the order of the flow
  }
  const auto list = out.open("ul");
  for (const profile::OperatorProfile* op : shown) write_line(out, subject, *op);
  if (shown.size() < box.operators.size()) {
    out.leaf("li", {{"class", "more"}},
             "and " + counted(static_cast<double>(box.operators.size() - shown.size()), "quicker operator"));
  }
}

void write_sink(Markup& out, const profile::SinkProfile& sink) {
  out.leaf("p", {{"class", "who"}}, "sink");
  const auto list = out.open("ul");
  const auto line = out.open("li", {{"class", "operator"}});
  out.leaf("span", {{"class", "name"}}, "training step");
  write_bar(out, "computes " + percent(1 - sink.wait_share) + ", waits " + percent(sink.wait_share),
            {{"compute", 1 - sink.wait_share, "computes " + percent(1 - sink.wait_share)},
             {"starved", sink.wait_share, "waits " + percent(sink.wait_share)}});
  out.leaf("span", {{"class", "took"}}, duration(sink.compute_s));
  out.leaf("span", {{"class", "load"}}, "waits " + percent(sink.wait_share));
}

bool holds_bottleneck(const Subject& subject, const Box& box) {
  return std::any_of(box.operators.begin(), box.operators.end(),
                     [&](const auto* op) { return subject.is_bottleneck(*op); });
}

/// Side by side there are as many as are read; the bottleneck is always among them.
constexpr std::size_t kMaxSideBySide = 16;

void write_stage(Markup& out, const Subject& subject, const Stage& stage, bool first) {
  const auto item = out.open("li", {{"class", "stage"}});
  if (stage.queues.empty() && !first) {
    const auto svg =
        out.open("svg", {{"class", "direct"}, {"viewBox", "0 0 24 16"}, {"aria-hidden", "true"}});
    out.empty("path", {{"class", "arrow"}, {"d", "M3 8h16m-6-5 6 5-6 5"}});
  }
  if (!stage.queues.empty()) {
    const auto queues = out.open("div", {{"class", "queues"}});
    for (std::size_t i = 0; i < std::min(kMaxSideBySide, stage.queues.size()); ++i) {
      write_queue(out, stage.queues[i]);
    }
    if (stage.queues.size() > kMaxSideBySide) {
      out.leaf("p", {{"class", "more"}},
               "and " + counted(static_cast<double>(stage.queues.size() - kMaxSideBySide), "more queue"));
    }
  }
  const auto boxes = out.open("div", {{"class", "boxes"}});
  std::size_t drawn = 0;
  for (const Box& box : stage.boxes) {
    const bool here = holds_bottleneck(subject, box);
    if (drawn >= kMaxSideBySide && !here) continue;
    ++drawn;
    const auto element = out.open("div", {{"class", here            ? "box bottleneck"
                                                    : box.is_sink() ? "box sink"
                                                                    : "box"}});
    if (here) out.leaf("p", {{"class", "mark"}}, "bottleneck");
    if (box.is_sink()) {
      write_sink(out, subject.profile.sink);
    } else {
      write_operators(out, subject, box);
    }
  }
  if (drawn < stage.boxes.size()) {
    out.leaf("p", {{"class", "more"}},
             "and " + counted(static_cast<double>(stage.boxes.size() - drawn), "more operator"));
  }
}

}  // namespace

void write_graph(Markup& out, const Subject& subject) {
  if (subject.profile.operators.empty() && subject.profile.queues.empty()) return;
  const auto section = out.open("section", {{"class", "graph"}});
  out.leaf("h2", "The pipeline");
  out.leaf(
      "p", {{"class", "read"}},
      "From left to right. A queue's colour is its level: left of the bottleneck queues are full, right of "
      "it they are empty. Times are per batch, summed over the workers.");
  std::vector<Stage> stages = stages_of(subject.profile);
  const std::size_t all = stages.size();
  std::size_t at = 0;
  std::erase_if(stages, [&](const Stage& stage) {
    ++at;
    const bool kept = at < kMaxDrawn || at == all ||
                      std::any_of(
                          stage.boxes.begin(), stage.boxes.end(),
                          [&](const Box& box) { return holds_bottleneck(subject, box); });
    return !kept;
  });
  {
    const auto list = out.open("ol", {{"class", "flow"}});
    for (const Stage& stage : stages) write_stage(out, subject, stage, &stage == &stages.front());
  }
  if (stages.size() < all) {
    out.leaf("p", {{"class", "read"}},
             counted(static_cast<double>(all - stages.size()), "stage") + " are left out here");
  }
}

}  // namespace headrace::report
