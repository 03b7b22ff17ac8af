#include "headrace/analysis/device/steps.h"

#include <string>
#include <utility>
#include <vector>

#include "analysis/device/rank_rows.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {

Table steps(std::span<const trace::Trace> traces) {
  Table table;
  Integers ranks, numbers, start_ns, complete, works, device_start_ns;
  Numbers duration_s, span_s, busy_s, computation_s, communication_s, memory_s;
  Scope everything;
  everything.keep_cut_off_step = true;
  for (const trace::Trace& trace : traces) {
    const std::vector<trace::Step>& all = trace.steps.all();
    if (all.empty())
      table.notes.push_back("rank " + std::to_string(trace.rank) +
                            " has no steps: call step() of the profiler after each");
    std::vector<std::vector<Work>> of_step(all.size());
    for (const Work& work : device_work(trace, everything).work) {
      const std::int32_t step = trace.steps.step_of(work.row);
      if (step != trace::Steps::kNone) of_step[static_cast<std::size_t>(step)].push_back(work);
    }
    const bool cut_off = last_step_is_cut_off(trace);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::vector<Work>& work = of_step[i];
      ranks.push_back(trace.rank);
      numbers.push_back(all[i].number);
      start_ns.push_back(all[i].start_ns);
      duration_s.push_back(seconds(all[i].end_ns - all[i].start_ns));
      complete.push_back(cut_off && i + 1 == all.size() ? 0 : 1);
      works.push_back(static_cast<std::int64_t>(work.size()));
      device_start_ns.push_back(work.empty() ? all[i].start_ns : work.front().start_ns);
      span_s.push_back(seconds(span_ns(work)));
      busy_s.push_back(seconds(total_ns(busy(work))));
      computation_s.push_back(seconds(total_ns(busy(work, KernelKind::computation))));
      communication_s.push_back(seconds(total_ns(busy(work, KernelKind::communication))));
      memory_s.push_back(seconds(total_ns(busy(work, KernelKind::memory))));
    }
  }
  table.add("rank", std::move(ranks))
      .add("step", std::move(numbers))
      .add("start_ns", std::move(start_ns))
      .add("duration_s", std::move(duration_s))
      .add("complete", std::move(complete))
      .add("works", std::move(works))
      .add("device_start_ns", std::move(device_start_ns))
      .add("device_span_s", std::move(span_s))
      .add("device_busy_s", std::move(busy_s))
      .add("computation_s", std::move(computation_s))
      .add("communication_s", std::move(communication_s))
      .add("memory_s", std::move(memory_s));
  return table;
}

}  // namespace headrace::analysis::device
