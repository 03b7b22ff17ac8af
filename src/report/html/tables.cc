// The figures behind the pictures.
#include <algorithm>
#include <cmath>

#include "../printable.h"
#include "../wording.h"
#include "figures.h"
#include "headrace/analysis/words.h"
#include "sections.h"

namespace headrace::report {

using analysis::duration;
using analysis::percent;

namespace {

using Cells = std::vector<std::string>;
using Rows = std::vector<Cells>;

constexpr std::size_t kMaxSlowItems = 16;
/// Columns of operators, and of queues, in the table of windows.
constexpr std::size_t kMaxColumns = 16;

void write_folded(Markup& out, const std::string& summary, const Cells& titles, const Rows& rows) {
  if (rows.empty()) return;
  const auto details = out.open("details");
  out.leaf("summary", summary);
  write_table(out, titles, rows);
}

std::string optional_duration(const std::optional<double>& seconds) {
  return seconds ? duration(*seconds) : "-";
}

std::string optional_count(const std::optional<std::uint64_t>& count) {
  return count ? std::to_string(*count) : "-";
}

std::string parameter_words(const std::vector<profile::Parameter>& parameters) {
  std::string text;
  for (const profile::Parameter& parameter : parameters) {
    text += (text.empty() ? "" : ", ") + brief(parameter.parameter) + "=" + figure_words(parameter.value);
    if (text.size() > 400) break;
  }
  return text;
}

Rows operator_rows(const profile::Profile& profile) {
  Rows rows;
  for (const profile::OperatorProfile& op : profile.operators) {
    if (rows.size() == kMaxDrawn) break;
    rows.push_back(
        {whole(op.name), brief(op.kind.text()), std::to_string(op.workers), brief(op.executor.text()),
         optional_count(op.items), op.items_per_batch >= 0 ? figure_words(op.items_per_batch) : "-",
         duration(op.demand_s), duration(op.busy_s), optional_duration(op.cpu_s), duration(op.service.mean_s),
         duration(op.service.p50_s), duration(op.service.p90_s), duration(op.service.p99_s),
         duration(op.service.max_s), percent(op.states.idle), optional_count(op.failures),
         optional_duration(op.run_queue_wait_s), parameter_words(op.parameters), brief(op.fidelity.text())});
  }
  return rows;
}

Rows queue_rows(const profile::Profile& profile) {
  Rows rows;
  for (const profile::QueueProfile& queue : profile.queues) {
    if (rows.size() == kMaxDrawn) break;
    const bool read = queue.samples.value_or(1) > 0;
    rows.push_back(
        {whole(queue.name), brief(queue.from), brief(queue.to),
         queue.capacity > 0 ? std::to_string(queue.capacity) : "-", read ? figure_words(queue.mean) : "-",
         read ? percent(queue.empty_share) : "-", read ? percent(queue.full_share) : "-",
         optional_count(queue.puts), optional_count(queue.gets), optional_duration(queue.put_wait_s),
         optional_duration(queue.get_wait_s), queue.item_age ? duration(queue.item_age->p50_s) : "-",
         queue.item_age ? duration(queue.item_age->p90_s) : "-", parameter_words(queue.parameters),
         brief(queue.fidelity.text())});
  }
  return rows;
}

Rows stall_rows(const profile::SinkProfile& sink) {
  Rows rows;
  for (const profile::Stall& stall : sink.longest_waits) {
    if (rows.size() == kMaxDrawn) break;
    rows.push_back({duration(stall.wait_s), duration(stall.at_s), std::to_string(stall.step)});
  }
  return rows;
}

Rows slow_item_rows(const profile::Profile& profile) {
  struct Item {
    double wall_s;
    Cells cells;
  };
  std::vector<Item> items;
  std::size_t operators = 0;
  for (const profile::OperatorProfile& op : profile.operators) {
    if (operators++ == kMaxDrawn) break;
    for (const profile::WorkerProfile& worker : op.per_worker) {
      for (const profile::ServiceSample& sample : worker.slowest) {
        if (!std::isfinite(sample.wall_s)) continue;
        items.push_back({sample.wall_s,
                         {brief(op.name), brief(worker.name), std::to_string(sample.index),
                          duration(sample.wall_s), duration(sample.cpu_s)}});
      }
    }
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.wall_s > b.wall_s; });
  Rows rows;
  for (std::size_t i = 0; i < std::min(kMaxSlowItems, items.size()); ++i) rows.push_back(items[i].cells);
  return rows;
}

Cells window_titles(const profile::Profile& profile, const std::vector<QueueGroup>& queues) {
  Cells titles{"from, to", "#steps", "#waited", "#starved", "#computed", "#CPU of the run", "#CPU of others"};
  for (std::size_t i = 0; i < std::min(kMaxColumns, profile.operators.size()); ++i) {
    titles.push_back("#" + brief(profile.operators[i].name) + " busy");
  }
  for (std::size_t i = 0; i < std::min(kMaxColumns, queues.size()); ++i) {
    titles.push_back("#" + brief(queues[i].name) + " level");
  }
  return titles;
}

Rows window_rows(const profile::Profile& profile, const std::vector<QueueGroup>& queues) {
  Rows rows;
  for (const profile::Window& window : profile.windows) {
    if (rows.size() == kMaxWindows) break;
    const auto [from, to] = interval(window.start_s, window.end_s);
    const auto share = [](const std::optional<double>& value) { return value ? percent(*value) : "-"; };
    Cells cells{from + " to " + to,
                std::to_string(window.steps),
                duration(window.wait_s),
                duration(window.starved_s),
                duration(window.compute_s),
                share(window.host.cpu_share),
                share(window.host.foreign_cpu_share)};
    for (std::size_t i = 0; i < std::min(kMaxColumns, profile.operators.size()); ++i) {
      const bool known = i < window.operators.size() && window.operators[i].busy_share >= 0;
      cells.push_back(known ? percent(window.operators[i].busy_share) : "-");
    }
    for (std::size_t i = 0; i < std::min(kMaxColumns, queues.size()); ++i) {
      const std::optional<double> level = mean_level(window, queues[i]);
      cells.push_back(level ? number(*level, 1) : "-");
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

}  // namespace

void write_tables(Markup& out, const Subject& subject) {
  const profile::Profile& profile = subject.profile;
  const Rows operators = operator_rows(profile);
  const Rows queues = queue_rows(profile);
  const std::vector<QueueGroup> groups = queue_groups(profile.queues);
  const Rows windows = window_rows(profile, groups);
  if (operators.empty() && queues.empty() && windows.empty()) return;
  const auto section = out.open("section", {{"class", "figures"}});
  out.leaf("h2", "All figures");
  write_folded(out, "Operators",
               {"name", "kind", "#workers", "executor", "#items", "#items a batch", "#demand", "#busy",
                "#CPU time", "#mean", "#p50", "#p90", "#p99", "#max", "#idle", "#failures",
                "#waited for a core", "parameters", "recorded"},
               operators);
  write_folded(
      out, "Queues",
      {"name", "from", "to", "#capacity", "#mean", "#empty", "#full", "#puts", "#gets", "#waited to put",
       "#waited to get", "#item age p50", "#item age p90", "parameters", "recorded"},
      queues);
  write_folded(out, "Windows of time", window_titles(profile, groups), windows);
  write_folded(out, "Longest waits", {"#waited", "#after", "#step"}, stall_rows(profile.sink));
  write_folded(out, "Slowest items", {"operator", "worker", "#its item", "#took", "#CPU"},
               slow_item_rows(profile));
}

}  // namespace headrace::report
