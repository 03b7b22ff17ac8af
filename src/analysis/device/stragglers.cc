#include "headrace/analysis/device/collectives.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/device/order.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

struct Collective {
  std::string_view name;
  std::int64_t stream = 0;
  std::int64_t step = 0;
  std::size_t trace = 0;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;

  auto key() const noexcept { return std::tuple(name, stream, step); }
};

/// Numbers of the complete steps that all traces have, of these those that were asked for.
std::vector<std::int64_t> common_steps(std::span<const trace::Trace> traces,
                                       const StragglersOptions& options) {
  std::vector<std::int64_t> common;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    std::vector<std::int64_t> numbers;
    for (const trace::Step& step : traces[i].steps.all()) numbers.push_back(step.number);
    if (options.steps.empty() && last_step_is_cut_off(traces[i])) numbers.pop_back();
    std::sort(numbers.begin(), numbers.end());
    std::vector<std::int64_t> both;
    std::set_intersection(common.begin(), common.end(), numbers.begin(), numbers.end(),
                          std::back_inserter(both));
    common = i == 0 ? numbers : both;
  }
  if (options.steps.empty()) return common;
  std::vector<std::int64_t> wanted = options.steps;
  std::sort(wanted.begin(), wanted.end());
  std::vector<std::int64_t> both;
  std::set_intersection(common.begin(), common.end(), wanted.begin(), wanted.end(), std::back_inserter(both));
  return both;
}

double mean_step_ns(std::span<const trace::Trace> traces, const std::vector<std::int64_t>& steps) {
  double sum = 0;
  std::size_t count = 0;
  for (const trace::Trace& trace : traces) {
    for (const trace::Step& step : trace.steps.all()) {
      if (!std::binary_search(steps.begin(), steps.end(), step.number)) continue;
      sum += static_cast<double>(step.end_ns - step.start_ns);
      ++count;
    }
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

/// The last of each name, stream, step and trace, by name, stream and step.
std::vector<Collective> collectives(std::span<const trace::Trace> traces,
                                    const std::vector<std::int64_t>& steps) {
  const double shortest_ns = 0.01 * mean_step_ns(traces, steps);
  std::vector<Collective> all;
  Scope scope;
  scope.steps = steps;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const trace::Trace& trace = traces[i];
    const DeviceWork work = device_work(trace, scope);
    for (const Work& each : work.work) {
      const std::int64_t duration_ns = each.end_ns - each.start_ns;
      if (each.kind != KernelKind::communication || static_cast<double>(duration_ns) < shortest_ns) continue;
      const auto step = static_cast<std::size_t>(step_of(trace, each.row));
      all.push_back({trace.columns().name_of(each.row), work.streams[each.stream].stream,
                     trace.steps.all()[step].number, i, each.start_ns, duration_ns});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Collective& a, const Collective& b) {
    return std::tuple_cat(a.key(), std::tuple(a.trace)) < std::tuple_cat(b.key(), std::tuple(b.trace));
  });
  std::vector<Collective> last;
  for (const Collective& each : all) {
    if (!last.empty() && last.back().key() == each.key() && last.back().trace == each.trace) last.pop_back();
    last.push_back(each);
  }
  return last;
}

/// One collective of one step, on all ranks.
using Meeting = std::span<const Collective>;

/// The meetings of all ranks, by name and stream.
std::vector<Meeting> meetings(std::span<const Collective> all, std::size_t ranks) {
  std::vector<Meeting> result;
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i;
    while (end < all.size() && all[end].key() == all[i].key()) ++end;
    if (end - i == ranks) result.push_back(all.subspan(i, end - i));
    i = end;
  }
  return result;
}

double spread_ns(Meeting meeting) {
  double mean = 0;
  for (const Collective& each : meeting) mean += static_cast<double>(each.duration_ns);
  mean /= static_cast<double>(meeting.size());
  double squares = 0;
  for (const Collective& each : meeting) squares += std::pow(static_cast<double>(each.duration_ns) - mean, 2);
  return std::sqrt(squares / static_cast<double>(meeting.size() - 1));
}

/// Meetings of the name and stream whose durations differ most between ranks, on average over steps.
std::span<const Meeting> most_telling(std::span<const Meeting> all) {
  std::span<const Meeting> best;
  double largest = -1;
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i;
    double sum = 0;
    for (; end < all.size() && all[end][0].name == all[i][0].name && all[end][0].stream == all[i][0].stream;
         ++end)
      sum += spread_ns(all[end]);
    const double mean = sum / static_cast<double>(end - i);
    if (mean > largest) {
      largest = mean;
      best = all.subspan(i, end - i);
    }
    i = end;
  }
  return best;
}

struct Lateness {
  std::int64_t steps = 0;
  std::int64_t late_ns = 0;
  std::int64_t wait_ns = 0;
};

std::vector<Lateness> judge(std::span<const Meeting> meetings, std::size_t ranks, std::size_t candidates) {
  std::vector<Lateness> result(ranks);
  for (const Meeting meeting : meetings) {
    std::vector<std::int64_t> starts;
    std::int64_t shortest_ns = meeting[0].duration_ns;
    for (const Collective& each : meeting) {
      starts.push_back(each.start_ns);
      shortest_ns = std::min(shortest_ns, each.duration_ns);
    }
    std::sort(starts.begin(), starts.end(), std::greater<>());
    const std::int64_t late_from_ns = starts[std::min(candidates, ranks) - 1];
    for (const Collective& each : meeting) {
      Lateness& of = result[each.trace];
      if (each.start_ns >= late_from_ns) ++of.steps;
      of.late_ns += each.start_ns - starts.back();
      of.wait_ns += each.duration_ns - shortest_ns;
    }
  }
  return result;
}

/// Whether each of `late` is behind the last of the others by more than these are apart, and by more than it
/// varies itself from step to step.
bool stand_out(std::span<const Meeting> meetings, std::span<const Lateness> judged,
               std::span<const std::size_t> late, std::span<const std::size_t> others) {
  const auto by_lateness = [&](std::size_t a, std::size_t b) {
    return judged[a].late_ns < judged[b].late_ns;
  };
  const auto [first, last] = std::minmax_element(others.begin(), others.end(), by_lateness);
  const auto steps = static_cast<double>(meetings.size());
  const double last_ns = static_cast<double>(judged[*last].late_ns) / steps;
  const double apart_ns = last_ns - static_cast<double>(judged[*first].late_ns) / steps;

  // Mean start of the others in each step, less the step's first start: small numbers stay exact.
  std::vector<double> others_ns;
  for (const Meeting meeting : meetings) {
    double sum = 0;
    for (const std::size_t other : others)
      sum += static_cast<double>(meeting[other].start_ns - meeting[0].start_ns);
    others_ns.push_back(sum / static_cast<double>(others.size()));
  }
  return std::all_of(late.begin(), late.end(), [&](std::size_t rank) {
    std::vector<double> behind_ns;
    for (std::size_t step = 0; step < meetings.size(); ++step) {
      const Meeting meeting = meetings[step];
      const std::int64_t start_ns = meeting[rank].start_ns - meeting[0].start_ns;
      behind_ns.push_back(static_cast<double>(start_ns) - others_ns[step]);
    }
    const double varies_ns = behind_ns.size() < 2 ? 0 : describe(std::move(behind_ns)).std;
    const double late_ns = static_cast<double>(judged[rank].late_ns) / steps - last_ns;
    return late_ns > apart_ns && late_ns > varies_ns;
  });
}

/// How many of `order` (the latest first) are stragglers: as many as possible, but no more than half, since
/// where most are late it is the others that stand out.
std::size_t count_stragglers(std::span<const Meeting> meetings, std::span<const Lateness> judged,
                             std::span<const std::size_t> order, std::size_t candidates) {
  if (order.size() == 2 && meetings.size() == 1) return 0;
  for (std::size_t count = std::min(candidates, order.size() / 2); count > 0; --count) {
    if (stand_out(meetings, judged, order.first(count), order.subspan(count))) return count;
  }
  return 0;
}

/// The sentence that explains an empty table, nothing if there is something to judge by.
std::optional<std::string> missing(std::span<const trace::Trace> traces,
                                   const std::vector<std::int64_t>& steps,
                                   std::span<const Meeting> judged_by) {
  if (traces.size() < 2) return "stragglers need the traces of two ranks or more";
  if (steps.empty()) return "the ranks have no step in common: stragglers are found step by step";
  if (judged_by.empty()) return "no collective that takes 1 % of a step runs on every rank";
  return std::nullopt;
}

}  // namespace

Table stragglers(std::span<const trace::Trace> traces, const StragglersOptions& options) {
  const std::size_t candidates = std::max<std::size_t>(options.candidates, 1);
  const std::vector<std::int64_t> steps = common_steps(traces, options);
  std::vector<Collective> all;
  std::vector<Meeting> meet;
  if (traces.size() >= 2 && !steps.empty()) {
    all = collectives(traces, steps);
    meet = meetings(all, traces.size());
  }
  const std::span<const Meeting> judged_by = most_telling(meet);

  Rows<StragglersColumns> rows;
  if (const auto why = missing(traces, steps, judged_by)) {
    rows.note(*why);
  } else {
    rows.note("judged by " + std::string(judged_by[0][0].name) + " on stream " +
              std::to_string(judged_by[0][0].stream));
    const std::vector<Lateness> judged = judge(judged_by, traces.size(), candidates);
    const std::vector<std::size_t> order = descending_order(
        traces.size(), [&](std::size_t each) { return std::tie(judged[each].steps, judged[each].late_ns); });
    const std::size_t found = count_stragglers(judged_by, judged, order, candidates);
    if (found == 0 && traces.size() == 2 && judged_by.size() == 1) {
      rows.note("two ranks and one step do not tell a straggler from chance");
    } else if (found == 0) {
      rows.note("no straggler: no rank is slower than the normal spread between ranks");
    }
    const auto count = static_cast<double>(judged_by.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Lateness& each = judged[order[i]];
      rows.add(traces[order[i]].rank, i < found, each.steps, judged_by.size(), seconds(each.late_ns) / count,
               seconds(each.wait_ns) / count);
    }
  }
  return rows.take();
}

}  // namespace headrace::analysis::device
