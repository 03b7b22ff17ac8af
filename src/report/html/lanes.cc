// A lane for every worker: what it did and when, and the longest waits close up.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "../printable.h"
#include "figures.h"
#include "headrace/analysis/words.h"
#include "headrace/report/html.h"
#include "lane_rows.h"
#include "sections.h"

namespace headrace::report {

using analysis::counted;
using analysis::duration;
using analysis::percent;

namespace {

constexpr std::size_t kColumns = 480;
constexpr std::size_t kColumnsCloseUp = 160;
constexpr std::size_t kMaxLanes = 32;
/// Below this there is nothing to see: the history counts in microseconds.
constexpr std::int64_t kShortest_ns = 10'000;
constexpr std::size_t kMaxWaits = 5;
/// Around a wait that is shown close up: so much of its length on each side.
constexpr std::int64_t kAround = 2;
constexpr std::size_t kMaxNamed = 3;
/// Shown unless the reader asks for another range: the newest steps, of which the history is finest.
constexpr std::size_t kSteps = 20;

void write_lane(Markup& out, const LaneRow& row, std::size_t columns) {
  out.leaf("span", {{"class", "label"}, {"title", whole(row.name)}}, brief(row.name));
  const auto svg = out.open("svg", {{"class", "levels"},
                                    {"viewBox", "0 0 " + std::to_string(columns) + " 1"},
                                    {"preserveAspectRatio", "none"},
                                    {"role", "img"},
                                    {"aria-label", "what " + brief(row.name) + " did over time"}});
  std::map<std::string, std::string> paths;
  for (const Piece& piece : row.pieces)
    paths[piece.css_class] += fmt::format("M{0} 0H{1}V1H{0}z", piece.begin, piece.end);
  for (const auto& [css_class, path] : paths) out.empty("path", {{"class", css_class}, {"d", path}});
}

void write_picture(Markup& out, const LoopLanes& lanes, Span shown, std::size_t columns) {
  const auto grid = out.open("div", {{"class", "time"}});
  for (const LaneRow& row : lane_rows(lanes, shown, columns, kMaxLanes)) write_lane(out, row, columns);
  out.leaf("span", {{"class", "label"}}, "");
  const auto axis = out.open("div", {{"class", "axis"}});
  const auto seconds = [&](std::int64_t ns) {
    return duration(static_cast<double>(ns - lanes.whole.begin_ns) * 1e-9);
  };
  out.leaf("span", seconds(shown.begin_ns));
  out.leaf("span", seconds(shown.begin_ns + shown.length_ns() / 2));
  out.leaf("span", seconds(shown.end_ns));
}

std::string busy_words(const LoopLanes& lanes, Span wait) {
  std::string words;
  std::size_t named = 0;
  for (const BusyOperator& op : busy_operators(lanes, wait)) {
    if (op.share < 0.01 || named++ == kMaxNamed) break;
    words += (words.empty() ? "Busy in that time: " : ", ") + brief(op.name) + " " + percent(op.share);
  }
  return words.empty() ? "No recorded worker was busy in that time." : words + ".";
}

/// What the reader asked to see, within the run; the last steps if that is nothing.
Span shown_of(const LoopLanes& lanes, const HtmlOptions& options) {
  const double most_s = static_cast<double>(lanes.whole.length_ns()) * 1e-9;
  const auto within = [&](double seconds) { return seconds > 0 ? std::min(seconds, most_s) : 0.0; };
  const double from_s = within(options.from_s);
  const double to_s = within(options.to_s);
  const Span asked{lanes.whole.begin_ns + static_cast<std::int64_t>(from_s * 1e9),
                   lanes.whole.begin_ns + static_cast<std::int64_t>(to_s * 1e9)};
  if (asked.length_ns() >= kShortest_ns) return asked;
  const std::vector<profile::GetNextCall>& calls = lanes.loop->calls;
  return {calls[calls.size() - std::min(calls.size(), kSteps)].begin_ns, lanes.whole.end_ns};
}

class RangeLinks {
 public:
  RangeLinks(Markup& out, const LoopLanes& lanes, const std::string& address)
      : out_(out), whole_(lanes.whole), address_(address) {}

  /// Nothing if nobody would answer, or the range is what is shown.
  void write(Literal word, Span to, Span shown) {
    to.begin_ns = std::clamp(to.begin_ns, whole_.begin_ns, whole_.end_ns);
    to.end_ns = std::clamp(to.end_ns, whole_.begin_ns, whole_.end_ns);
    const bool same = to.begin_ns == shown.begin_ns && to.end_ns == shown.end_ns;
    if (address_.empty() || same || to.length_ns() < kShortest_ns) return;
    const auto seconds = [&](std::int64_t ns) { return static_cast<double>(ns - whole_.begin_ns) * 1e-9; };
    out_.leaf("a",
              {{"href", fmt::format("{}from={:.6f}&to={:.6f}#lanes", address_, seconds(to.begin_ns),
                                    seconds(to.end_ns))}},
              word.text());
  }

  void write_around(Span shown) {
    if (address_.empty()) return;
    const std::int64_t half = shown.length_ns() / 2;
    const auto links = out_.open("p", {{"class", "ranges"}});
    const std::int64_t back = std::min(half, shown.begin_ns - whole_.begin_ns);
    const std::int64_t on = std::min(half, whole_.end_ns - shown.end_ns);
    write("earlier", {shown.begin_ns - back, shown.end_ns - back}, shown);
    write("later", {shown.begin_ns + on, shown.end_ns + on}, shown);
    write("closer", {shown.begin_ns + half / 2, shown.end_ns - half / 2}, shown);
    write("wider", {shown.begin_ns - half, shown.end_ns + half}, shown);
    write("the whole run", whole_, shown);
    out_.leaf("span", {{"class", "scripted"}}, "or drag over the rows");
  }

 private:
  Markup& out_;
  Span whole_;
  const std::string& address_;
};

void write_wait(Markup& out, const LoopLanes& lanes, const profile::GetNextCall& call, Span shown,
                RangeLinks& links) {
  const Span wait{call.begin_ns, call.end_ns};
  const auto details = out.open("details");
  out.leaf(
      "summary",
      fmt::format("{} for batch {}, after {}", duration(static_cast<double>(wait.length_ns()) * 1e-9),
                  call.batch, duration(static_cast<double>(wait.begin_ns - lanes.whole.begin_ns) * 1e-9)));
  out.leaf("p", {{"class", "read"}}, busy_words(lanes, wait));
  const std::int64_t around = wait.length_ns() / kAround;
  const Span close{wait.begin_ns - around, wait.end_ns + around};
  write_picture(out, lanes, close, kColumnsCloseUp);
  links.write("show it above", close, shown);
}

}  // namespace

void write_lanes(Markup& out, const Subject& subject, const HtmlOptions& options) {
  if (options.history == nullptr) return;
  const LoopLanes lanes = lanes_of(*options.history, subject.profile.loader);
  if (lanes.loop == nullptr || lanes.whole.length_ns() < kShortest_ns) return;
  const Span shown = shown_of(lanes, options);
  const auto seconds = [&](std::int64_t ns) {
    return fmt::format("{:.6f}", static_cast<double>(ns - lanes.whole.begin_ns) * 1e-9);
  };
  const auto section = out.open("section", {{"class", "lanes"},
                                            {"id", "lanes"},
                                            {"data-from", seconds(shown.begin_ns)},
                                            {"data-to", seconds(shown.end_ns)},
                                            {"data-end", seconds(lanes.whole.end_ns)}});
  out.leaf("h2", "Who did what, and when");
  const bool newest = shown.end_ns == lanes.whole.end_ns && shown.begin_ns > lanes.whole.begin_ns;
  out.leaf("p", {{"class", "read"}},
           std::string(newest ? "The end of the run. " : "") +
               "Each piece of a row has the colour of what took the longest in it. Where the training loop "
               "waits, look for the worker that is busy all the while.");
  write_legend(out, {{"starved", "loop waits", ""},
                     {"compute", "training step", ""},
                     {"busy", "worker busy", ""},
                     {"waits", "waiting for input", ""},
                     {"blocked", "blocked, output full", ""},
                     {"idle", "idle", ""},
                     {"l0", "queue empty", ""},
                     {"l4", "queue full", ""}});
  RangeLinks links(out, lanes, options.range_link);
  links.write_around(shown);
  write_picture(out, lanes, shown, kColumns);
  if (lanes.workers.size() > kMaxLanes) {
    out.leaf("p", {{"class", "read"}},
             "and " + counted(static_cast<double>(lanes.workers.size() - kMaxLanes), "more worker"));
  }
  const std::vector<profile::GetNextCall> waits = longest_calls(*lanes.loop, kMaxWaits);
  if (!waits.empty()) out.leaf("h3", "The longest waits, close up");
  for (const profile::GetNextCall& call : waits) write_wait(out, lanes, call, shown, links);
}

}  // namespace headrace::report
