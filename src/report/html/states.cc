// What operators and their workers did with their time.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "../printable.h"
#include "../shared_threads.h"
#include "../wording.h"
#include "../worker_rows.h"
#include "figures.h"
#include "headrace/analysis/words.h"
#include "sections.h"

namespace headrace::report {

using analysis::counted;
using analysis::duration;
using analysis::percent;

namespace {

/// One row of a table with a bar of states in it.
struct StateRow {
  std::string name;
  std::string title;                 ///< tooltip of the name
  std::vector<std::string> figures;  ///< before the bar, to the right
  profile::States states;
  std::string cpu;
  bool here = false;
};

std::string cpu_of(std::optional<double> cpu_s, double busy_s) {
  return cpu_s && busy_s > 0 ? percent(std::min(1.0, *cpu_s / busy_s)) : "-";
}

bool known(const profile::States& states) {
  return states.busy + states.blocked_in + states.blocked_out + states.idle > 0;
}

/// The columns behind the bar.
constexpr Literal kShares[] = {Literal("busy"), Literal("waits for input"), Literal("blocked")};

/// `titles`: of the columns before the bar. Where the page is narrow, each figure stands behind its title.
void write_row(Markup& out, const std::vector<Literal>& titles, const StateRow& row) {
  const auto element = out.open("tr", {{"class", row.here ? "here" : "operator"}});
  out.leaf("th", {{"scope", "row"}, {"title", row.title}}, row.name);
  for (std::size_t i = 0; i < row.figures.size(); ++i)
    out.leaf("td", {{"class", "number"}, {"data-title", std::string(titles[i + 1].text())}}, row.figures[i]);
  const bool shown = known(row.states);
  {
    const auto cell = out.open("td", {{"class", "picture"}});
    if (shown) {
      std::string label;
      for (const BarPart& part : state_parts(row.states)) label += (label.empty() ? "" : ", ") + part.title;
      write_bar(out, label, state_parts(row.states));
    }
  }
  const double shares[] = {row.states.busy, row.states.blocked_in, row.states.blocked_out};
  for (std::size_t i = 0; i < std::size(kShares); ++i) {
    out.leaf("td", {{"class", "number"}, {"data-title", std::string(kShares[i].text())}},
             shown ? percent(shares[i]) : "-");
  }
  out.leaf("td", {{"class", "number cpu"}}, row.cpu);
}

void write_rows(Markup& out, const std::vector<Literal>& titles, const std::vector<StateRow>& rows) {
  const auto box = out.open("div", {{"class", "scroll tall"}, {"tabindex", "0"}});
  const auto table = out.open("table", {{"class", "states"}});
  {
    const auto head = out.open("thead");
    const auto row = out.open("tr");
    for (const Literal title : titles) {
      const bool is_first = title.text() == titles.front().text();
      out.leaf("th", {{"scope", "col"}, {"class", is_first ? "word" : "number"}}, title.text());
    }
    out.leaf("th", {{"scope", "col"}, {"class", "picture"}}, "");
    for (const Literal title : kShares) {
      out.leaf("th", {{"scope", "col"}, {"class", "number"}}, title.text());
    }
    out.leaf("th", {{"scope", "col"}, {"class", "number cpu"}}, "CPU");
  }
  const auto body = out.open("tbody");
  for (const StateRow& row : rows) write_row(out, titles, row);
}

std::vector<StateRow> operator_rows(const Subject& subject) {
  std::vector<StateRow> rows;
  for (std::size_t i = 0; i < subject.profile.operators.size(); ++i) {
    const profile::OperatorProfile& op = subject.profile.operators[i];
    const bool here = subject.is_bottleneck(op);
    if (rows.size() >= kMaxDrawn && !here) continue;
    const ShownStates states = shown_states(subject.profile, i);
    rows.push_back({brief(op.name),
                    whole(op.name) + (here ? ": the bottleneck" : ""),
                    {std::to_string(op.workers), duration(op.demand_s * op.workers),
                     states.known ? percent(states.elsewhere) : "-"},
                    {states.busy, states.blocked_in, states.blocked_out, op.states.idle},
                    cpu_of(op.cpu_s, op.busy_s),
                    here});
  }
  const profile::SinkProfile& sink = subject.profile.sink;
  if (sink.steps > 0) {
    rows.push_back({"training step",
                    "the loop that takes the batches",
                    {"1", duration(sink.compute_s), "-"},
                    {1 - fraction(sink.wait_share), fraction(sink.wait_share), 0, 0},
                    cpu_of(sink.compute_cpu_s, sink.compute_s),
                    false});
  }
  return rows;
}

/// Of more rows than can be read, those whose items take longest.
template <class Row, class Seconds>
std::size_t keep_slowest(std::vector<Row>& rows, Seconds seconds) {
  if (rows.size() <= kMaxDrawn) return 0;
  const auto finite = [&](const Row& row) { return std::isfinite(seconds(row)) ? seconds(row) : 0.0; };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& a, const Row& b) { return finite(a) > finite(b); });
  const std::size_t left_out = rows.size() - kMaxDrawn;
  rows.resize(kMaxDrawn);
  return left_out;
}

void write_left_out(Markup& out, std::size_t count) {
  if (count == 0) return;
  out.leaf("p", {{"class", "read"}}, "and " + counted(static_cast<double>(count), "quicker worker"));
}

/// Worker processes of a loader: one row each, their operators together.
void write_processes(Markup& out, const Subject& subject) {
  std::vector<WorkerRow> workers = worker_rows(subject.profile);
  if (workers.size() < 2) return;
  const std::size_t count = workers.size();
  const std::size_t left_out = keep_slowest(workers, [](const WorkerRow& row) { return row.batch_s(); });
  std::vector<StateRow> rows;
  for (const WorkerRow& worker : workers) {
    const std::string name = "worker " + std::to_string(worker.id);
    rows.push_back({name,
                    worker.shard.empty() ? name : name + ", part " + brief(worker.shard),
                    {number(worker.batches, 0), duration(worker.batch_s())},
                    worker.states,
                    worker.cpu_known ? cpu_of(worker.cpu_s, worker.busy_s) : "-",
                    false});
  }
  out.leaf("h3", std::to_string(count) + " worker processes");
  write_rows(out, {"", "batches", "a batch"}, rows);
  write_left_out(out, left_out);
}

/// Workers of one operator that are threads, or a pool's processes.
void write_workers(Markup& out, const Subject& subject, const profile::OperatorProfile& op) {
  std::vector<const profile::WorkerProfile*> workers;
  for (const profile::WorkerProfile& worker : op.per_worker) {
    if (!worker.worker_id) workers.push_back(&worker);
  }
  if (workers.size() < 2) return;
  const std::size_t count = workers.size();
  const std::size_t left_out = keep_slowest(workers, [](const auto* row) { return row->service.mean_s; });
  std::vector<StateRow> rows;
  for (const profile::WorkerProfile* worker : workers) {
    rows.push_back({brief(worker->name),
                    whole(op.name) + ", worker " + whole(worker->name),
                    {std::to_string(worker->items), duration(worker->service.mean_s)},
                    worker->states,
                    cpu_of(worker->cpu_s, worker->busy_s),
                    false});
  }
  const std::string title = brief(op.name) + ": " + counted(static_cast<double>(count), "worker") +
                            (static_cast<std::size_t>(std::max(0, op.workers)) < count
                                 ? ", " + std::to_string(op.workers) + " at a time"
                                 : "");
  const auto details = subject.is_bottleneck(op) ? out.open("details", {{"open", ""}}) : out.open("details");
  out.leaf("summary", title);
  write_rows(out, {"process/thread", "items", "an item"}, rows);
  write_left_out(out, left_out);
}

}  // namespace

void write_states(Markup& out, const Subject& subject) {
  const profile::Profile& profile = subject.profile;
  if (profile.operators.empty()) return;
  const auto section = out.open("section", {{"class", "workers"}});
  out.leaf("h2", "What the workers did");
  const std::vector<StateRow> rows = operator_rows(subject);
  write_legend(out, {{"busy", "busy", ""},
                     {"waits", "waiting for input", ""},
                     {"blocked", "blocked, output full", ""},
                     {"idle", "idle", ""}});
  write_rows(out, {"", "workers", "a batch", "elsewhere"}, rows);
  const std::size_t shown = rows.size() - (profile.sink.steps > 0 ? 1 : 0);
  if (shown < profile.operators.size()) {
    out.leaf("p", {{"class", "read"}},
             "and " + counted(static_cast<double>(profile.operators.size() - shown), "more operator"));
  }
  write_processes(out, subject);
  std::size_t listed = 0;
  for (const profile::OperatorProfile& op : profile.operators) {
    if (listed++ < kMaxDrawn || subject.is_bottleneck(op)) write_workers(out, subject, op);
  }
}

}  // namespace headrace::report
