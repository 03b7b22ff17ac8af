#include "sections.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "headrace/analysis/step_trace.h"
#include "headrace/analysis/words.h"
#include "printable.h"
#include "shown_rows.h"
#include "table.h"
#include "wording.h"

namespace headrace::report {

using analysis::duration;
using analysis::percent;
using profile::as_written;

namespace {

/// No more rows than a screen has; the JSON contains all.
constexpr std::size_t kMaxRows = 24;
/// Width of a change on a narrow page.
constexpr std::size_t kChangeColumns = 36;

/// Eight heights, one per group of levels, relative to the most frequent.
std::string levels(const std::vector<double>& occupancy) {
  constexpr std::size_t kMax = 12;
  constexpr const char* kHeights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (occupancy.empty()) return "-";
  std::vector<double> bars(std::min(kMax, occupancy.size()), 0);
  for (std::size_t i = 0; i < occupancy.size(); ++i) {
    const double share = occupancy[i];
    bars[i * bars.size() / occupancy.size()] += std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0;
  }
  const double most = *std::max_element(bars.begin(), bars.end());
  std::string text;
  for (double bar : bars) text += kHeights[most > 0 ? static_cast<int>(std::round(bar / most * 7)) : 0];
  return text;
}

/// As many rows as can be compared at a glance.
constexpr std::size_t kMaxWorkers = 8;
constexpr std::size_t kSlowestShown = 4;
constexpr std::size_t kFastestShown = 2;

}  // namespace

void add_table(Lines& lines, const Table& table, std::size_t width) {
  for (const std::string& line : table.lines(width - 2)) lines.push_back("  " + line);
}

std::string title_line(const profile::Profile& profile, std::size_t width) {
  const std::string rest = " · " + covered(profile);
  const std::size_t left = width > columns(rest) + 8 ? width - columns(rest) : 8;
  return shortened(shortened(profile.loader.empty() ? "loader" : profile.loader, left) + rest, width);
}

Lines advice_section(const profile::Profile& profile, const analysis::Diagnosis& diagnosis,
                     std::size_t width) {
  Lines lines;
  if (diagnosis.advice.empty()) return lines;
  Table table({{"", 9, false, false},
               {"change", 9, false, true, kChangeColumns},
               {"now", 3, true, false},
               {"predicted", 8, true, false},
               {"gain", 7, true, false},
               {"then the limit is", 2, false, false}});
  std::size_t rank = 0;
  for (const analysis::Advice& advice : diagnosis.advice) {
    ++rank;
    if (advice.parameter.empty()) continue;
    const bool predicted = advice.predicted_step_s.has_value();
    std::string then = predicted ? duration(*advice.predicted_step_s) : "-";
    if (predicted && advice.low && advice.high) {
      const auto [low, high] = interval(*advice.low, *advice.high);
      then += " [" + low + ", " + high + "]";
    }
    // The value must survive where a name has to be cut.
    const std::string change = " " + as_written(advice.from) + " -> " + as_written(advice.to);
    table.add({std::to_string(rank),
               shortened(advice.parameter,
                         kChangeColumns - std::min<std::size_t>(kChangeColumns - 10, columns(change))) +
                   change,
               duration(profile.sink.step_s), then, advice.speedup ? number(*advice.speedup, 2) + "x" : "-",
               limit_after(diagnosis, rank - 1)});
  }
  const Lines rows = table.lines(width - 2);
  std::size_t row = 0;
  rank = 0;
  lines.push_back("DO THIS");
  for (const analysis::Advice& advice : diagnosis.advice) {
    ++rank;
    if (!advice.parameter.empty()) {
      if (row == 0) lines.push_back("  " + rows[row++]);
      lines.push_back("  " + rows[row++]);
    }
    std::string text = advice.text;
    if (advice.parameter.empty() && advice.predicted_step_s) {
      text += ": " + duration(profile.sink.step_s) + " -> " + duration(*advice.predicted_step_s);
    }
    const bool numbered = advice.parameter.empty();
    add_sentence(lines, numbered ? "  " + std::to_string(rank) + "  " : "     ", text, width);
    for (const std::string& line : code_lines(advice.code))
      lines.push_back(shortened("       " + line, width));
  }
  return lines;
}

Lines operator_section(const profile::Profile& profile, const analysis::Diagnosis& diagnosis,
                       std::size_t width) {
  const bool shares = any_elsewhere(profile);
  std::vector<Column> heads{
      {"", 9, false, true},        {"kind", 1, false, false}, {"workers", 4, true, false},
      {"a batch", 8, true, false}, {"busy", 7, true, false},  {"waits for input", 3, true, false},
      {"blocked", 5, true, false}, {"CPU", 2, true, false},   {"", 6, false, false}};
  if (shares) {
    heads[5].title = "waits";  // for the names' sake
    heads.insert(heads.begin() + 5, {"elsewhere", 4, true, false});
  }
  Table table(std::move(heads));
  const auto add = [&](std::vector<std::string> cells, const std::string& elsewhere) {
    if (shares) cells.insert(cells.begin() + 5, elsewhere);
    table.add(std::move(cells));
  };
  std::size_t shown = 0;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const profile::OperatorProfile& op = profile.operators[i];
    const bool here = diagnosis.op && *diagnosis.op == op.name;
    if (shown >= kMaxRows && !here) continue;
    ++shown;
    const ShownStates states = shown_states(profile, i);
    const auto share = [&](double value) { return states.known ? percent(value) : "-"; };
    add({op.name, op.kind.empty() ? "-" : op.kind.text(), std::to_string(op.workers),
         duration(op.demand_s * op.workers), share(states.busy), share(states.blocked_in),
         share(states.blocked_out),
         op.cpu_s && op.busy_s > 0 ? percent(std::min(1.0, *op.cpu_s / op.busy_s)) : "-",
         here ? "<- here" : ""},
        share(states.elsewhere));
  }
  const profile::SinkProfile& sink = profile.sink;
  const bool timed = sink.step_s > 0;
  add({"training step", "sink", "1", timed ? duration(sink.compute_s) : "-",
       timed ? percent(1 - sink.wait_share) : "-", timed ? percent(sink.wait_share) : "-", "-",
       sink.compute_cpu_s && sink.compute_s > 0 ? percent(std::min(1.0, *sink.compute_cpu_s / sink.compute_s))
                                                : "-",
       ""},
      "-");
  Lines lines{"WHERE A BATCH GOES"};
  add_table(lines, table, width);
  if (shown < profile.operators.size()) {
    lines.push_back("  and " + std::to_string(profile.operators.size() - shown) + " more operators");
  }
  const std::string parts = step_sentence(analysis::step_trace(profile));
  const bool said_below = profile.device && profile.device->idle_s < 0;
  if (!parts.empty() && !said_below) add_sentence(lines, "  a step: ", parts, width);
  return lines;
}

Lines worker_section(const profile::Profile& profile, std::size_t width) {
  std::vector<WorkerRow> rows = worker_rows(profile);
  if (rows.size() < 2) return {};
  std::string between;
  if (rows.size() > kMaxWorkers) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const WorkerRow& a, const WorkerRow& b) { return a.batch_s() > b.batch_s(); });
    const auto first = rows.begin() + kSlowestShown;
    const auto last = rows.end() - kFastestShown;
    between = fmt::format("  {} more, {} to {} a batch", last - first, duration((last - 1)->batch_s()),
                          duration(first->batch_s()));
    rows.erase(first, last);
  }
  const bool sharded =
      std::any_of(rows.begin(), rows.end(), [](const WorkerRow& row) { return !row.shard.empty(); });
  Table table({{"", 9, false, true},
               {"batches", 4, true, false},
               {"a batch", 8, true, false},
               {"busy", 7, true, false},
               {"blocked", 5, true, false},
               {"CPU", 3, true, false},
               {sharded ? "part" : "", 2, false, false}});
  for (const WorkerRow& row : rows) {
    table.add({"worker " + std::to_string(row.id), number(row.batches, 0), duration(row.batch_s()),
               percent(std::min(1.0, row.states.busy)), percent(row.states.blocked_out),
               row.cpu_known && row.busy_s > 0 ? percent(std::min(1.0, row.cpu_s / row.busy_s)) : "-",
               row.shard});
  }
  Lines lines{"WORKERS"};
  add_table(lines, table, width);
  if (!between.empty()) lines.push_back(shortened(between, width));
  return lines;
}

Lines queue_section(const profile::Profile& profile, std::size_t width) {
  if (profile.queues.empty()) return {};
  Table table({{"", 9, false, true},
               {"capacity", 4, true, false},
               {"0 .... full", 6, false, false},
               {"empty", 8, true, false},
               {"full", 7, true, false},
               {"mean", 3, true, false}});
  const std::vector<profile::QueueProfile> queues = folded(profile.queues);
  for (std::size_t i = 0; i < std::min(kMaxRows, queues.size()); ++i) {
    const profile::QueueProfile& queue = queues[i];
    // Only the capacity is known of a queue whose level was never read.
    const bool read = queue.samples.value_or(1) > 0;
    table.add({analysis::in_a_table(queue), queue.capacity > 0 ? std::to_string(queue.capacity) : "-",
               levels(queue.occupancy), read ? percent(queue.empty_share) : "-",
               read ? percent(queue.full_share) : "-", read ? number(queue.mean, 1) : "-"});
  }
  Lines lines{"QUEUES"};
  add_table(lines, table, width);
  for (const profile::QueueProfile& queue : profile.queues)
    add_sentence(lines, "  ", item_age_sentence(queue, profile.sink.step_s), width);
  return lines;
}

Lines window_section(const analysis::Diagnosis& diagnosis, std::size_t width) {
  if (diagnosis.windows.empty()) return {};
  constexpr std::size_t kMaxWindows = 8;
  Lines lines{"IN TIME"};
  for (std::size_t i = 0; i < std::min(kMaxWindows, diagnosis.windows.size()); ++i) {
    const analysis::VerdictWindow& window = diagnosis.windows[i];
    const std::string when = "  " + number(window.start_s, 1) + " s to " + number(window.end_s, 1) + " s";
    lines.push_back(shortened(padded(when, 24) + window_words(window), width));
  }
  if (diagnosis.windows.size() > kMaxWindows) {
    lines.push_back("  and " + std::to_string(diagnosis.windows.size() - kMaxWindows) + " more changes");
  }
  return lines;
}

}  // namespace headrace::report
